"""Make a ranker of the options `--ranker NAME --set key=value … --prepare NAME … --seed N`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import filterfalse
from typing import Any

from truerank.cli.parser import UsageError
from truerank.core.method_names import bare, called_here
from truerank.core.names import nearest, resolve, unknown
from truerank.core.printing import note
from truerank.models import registry

_POINT_NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")  # JSON has digits on both sides of the point


def key_values(option: str, form: str, pairs: Iterable[str]) -> dict[str, str]:
    """Return the values of `key=value` arguments by key; errors quote `form`."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise UsageError(f"{option} must be {form}, got {pair!r}")
        if found.get(key, text) != text:
            raise UsageError(f"{option} {key} has the values {found[key]} and {text}. Write one")
        found[key] = text
    return found


def settings_of(ranker: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a ranker's name in a paper and of `--set`, which may not contradict each other."""
    return parse_settings([*ranker_named(ranker)[1], *pairs])


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` strings of `--set`: values as JSON, numbers between commas as a list, others as strings."""
    settings = {}
    for key, text in key_values("--set", "key=value", pairs).items():
        try:
            settings[key] = json_value(text)
            values = listed(text) or [""]
            if isinstance(settings[key], str) and all(isinstance(one, int | float) for one in values):
                settings[key] = values  # C=0.1,1,10
        except RecursionError:
            raise UsageError(f"--set {key}: the value is nested too deeply") from None
    return settings


def json_value(text: str) -> Any:
    """Return the value of JSON or of a number such as `.5` or `1.`, or else the text itself.

    >>> json_value("0.5"), json_value(".5"), json_value("-1."), json_value("fuzzy"), json_value("1.2.3")
    (0.5, 0.5, -1.0, 'fuzzy', '1.2.3')
    """
    try:
        return json.loads(text)
    except ValueError:  # no JSON, or a number of thousands of digits
        return float(text) if _POINT_NUMBER.fullmatch(text) else text


def listed(text: str) -> list[Any] | None:
    """Return the list that `[1,10]`, `1,10` or `constant,fuzzy` describes, or None if the text is no list.

    >>> listed('["a", 1]'), listed("constant,fuzzy"), listed("0.1,1,null"), listed("7"), listed("[1")
    (['a', 1], ['constant', 'fuzzy'], [0.1, 1, None], None, None)
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if "," not in text or any(mark in text for mark in "[]{}()\"'"):
            return None
        return [json_value(part) for part in text.split(",")]
    return value if isinstance(value, list) and value else None


def ranker_named(name: str) -> tuple[str, list[str]]:
    """Return the command line name of a ranker, and its `--set`, by this name or one in papers; others are misuse.

    >>> ranker_named("ListNet"), ranker_named("SVM-MAP")
    (('list-net', []), ('measure-svm', ['measure=AP']))
    """
    if name in registry.RANKERS:
        return name, []
    method = called_here(name)
    if method is not None and method.kind == "ranker":
        return method.name, [method.setting] if method.setting else []
    same = [own for own in registry.RANKERS if bare(own) == bare(name)]
    if not same:
        raise UsageError(unknown(registry.RANKERS, name, "ranker"))
    return same[0], []


def ranker_class(name: str) -> type[Any]:
    """Return the class of a ranker by its command line name, or one in papers."""
    return resolve(registry.RANKERS[ranker_named(name)[0]])


def make_ranker(
    name: str, settings: dict[str, Any], seed: int | None = None, prepare: Sequence[str] | None = None
) -> Any:
    """Return a ranker by its name (see `ranker_named`), after the transformers of `--prepare`. Unknown names and
    parameters are misuse. A seed without effect causes a note on stderr.
    """
    from truerank.compat.other_names import advice

    own, papers = ranker_named(name)
    cls, settings = resolve(registry.RANKERS[own]), parse_settings(papers) | settings
    known = cls().get_params(deep=False)
    unknown = list(filterfalse(known.__contains__, settings))
    if unknown:
        theirs = advice(cls, unknown[0])
        listed = f"Its parameters are: {', '.join(known)}"
        hint = f": {theirs}. {listed}" if theirs else nearest(unknown[0], known, listed)
        raise UsageError(f"{name} has no parameter {unknown[0]!r}{hint}")
    if seed is not None:
        # Scripts pass one seed to all commands, so a seed without effect is a note and no error.
        if "random_state" in known:
            settings = {"random_state": seed} | settings
        else:
            note(f"truerank: --seed {seed} has no effect: {name} does not use random numbers")
    ranker = cls(**settings)
    if not prepare:
        return ranker
    from truerank.rankers.pipeline import TRANSFORMERS, RankerPipeline

    wrong = next((step for step in prepare if step not in TRANSFORMERS), None)
    if wrong is not None:
        near = nearest(wrong, TRANSFORMERS, f"Choose among: {', '.join(TRANSFORMERS)}")
        raise UsageError(f"--prepare: unknown transformer {wrong!r}{near}")
    return RankerPipeline(list(prepare), ranker)
