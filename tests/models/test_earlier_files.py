"""Files of an earlier version, and damaged files of every kind of model.

`earlier/` holds files that commit 8d037a5f wrote, before files had checksums: models with rows and the scores that
they had, the history of a retraining, and a plan of judgements with grades.
"""

from __future__ import annotations

import copy
import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

from support.edited_models import JUNK
from support.refusals import refused
from truerank.core.errors import ModelFileError
from truerank.judging.plan import read_plan
from truerank.models.model_file import load_model, model_text
from truerank.significance.history import History

EARLIER = Path(__file__).parent / "earlier"
MODELS = {one["name"]: one for one in map(json.loads, (EARLIER / "models.jsonl").read_text().splitlines())}
GONE = ("PosFuse", "ProbFuse", "SegFuse", "SlideFuse", "BayesFuse", "MAPFuse")
KEPT = [name for name in MODELS if name not in GONE]
DAMAGES, MOST = 2, 60  # of each field, and fields of a model


def loaded(document, path):
    path.write_text(json.dumps(document))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model(path)


def scores(model, one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if one["call"] == "fuse":
            return model.predict(*one["inputs"]).to_dict()
        inputs = [x if isinstance(x[0], str) else np.array(x) for x in one["inputs"]]
        return np.asarray(getattr(model, one["call"])(*inputs)).tolist()


@pytest.mark.parametrize("name", KEPT)
def test_earlier_models_have_their_scores(name, tmp_path):
    model = loaded(MODELS[name]["file"], tmp_path / "model.json")
    assert scores(model, MODELS[name]) == MODELS[name]["expected"]


@pytest.mark.parametrize("name", GONE)
def test_earlier_models_of_classes_that_are_gone_are_refused_with_a_remedy(name, tmp_path):
    with refused(ModelFileError, code="gone") as caught:
        loaded(MODELS[name]["file"], tmp_path / "model.json")
    assert "RunFusion" in str(caught.value)
    assert '"1.0.0"' in str(caught.value)


def test_an_earlier_history_and_an_earlier_plan_are_read():
    history = History.read(EARLIER / "history.json")
    assert history.look(np.array([5, 7], dtype=np.uint64)) == 3
    assert history.references == {"ab": {"digest": "cd", "path": "old.json"}}
    plan = read_plan(EARLIER / "plan.csv")
    assert (len(plan.keys), len(plan.to_judge), plan.n_rounds) == (40, 0, 1)


def fields(value, name=""):
    """Every (object, "params" or "fitted", field) of a file."""
    if isinstance(value, dict):
        for part in ("params", "fitted"):
            for key in value.get(part, {}) if "$class" in value else ():
                yield value[part], key
        for item in value.values():
            yield from fields(item)
    elif isinstance(value, list):
        for item in value:
            yield from fields(item)


def damaged(value, rng):
    """A value that differs: other numbers or types, a value or a digit more or less."""
    if isinstance(value, dict) and isinstance(value.get("values"), list) and value["values"] and rng.random() < 0.6:
        changed, place = copy.deepcopy(value), rng.randrange(len(value["values"]))
        old = changed["values"][place]
        is_number = isinstance(old, int | float) and not isinstance(old, bool)
        changed["values"][place] = rng.choice([old + 1, -old - 1, old * 1.0000001 + 1e-300]) if is_number else "x"
        return changed
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.6:
        return rng.choice([value + 1, -value - 1, value * 10 + 1])
    return copy.deepcopy(rng.choice(JUNK))


@pytest.mark.parametrize("name", KEPT)
def test_damage_of_any_field_is_refused_with_its_name_or_changes_no_score(name, tmp_path):
    path, rng = tmp_path / "model.json", random.Random(name)
    document = json.loads(model_text(loaded(MODELS[name]["file"], path)))
    places = list(enumerate(fields(document["model"])))
    places = rng.sample(places, min(len(places), MOST))
    refusals, silent = 0, []
    for number, (_, key) in places:
        for _ in range(DAMAGES):
            edited = copy.deepcopy(document)
            holder, _ = list(fields(edited["model"]))[number]
            if rng.random() < 0.1:
                del holder[key]
            else:
                holder[key] = damaged(holder[key], rng)
            try:
                model = loaded(edited, path)
            except ModelFileError as error:
                refusals += 1
                silent += [] if key in str(error) else [(key, str(error))]
                continue
            assert scores(model, MODELS[name]) == MODELS[name]["expected"], key
    assert not silent
    assert refusals > DAMAGES * len(places) / 2


def test_a_checksum_that_is_damaged_or_left_out_is_refused_by_the_field_or_changes_no_score(tmp_path):
    path, one = tmp_path / "model.json", MODELS["ridge"]
    document = json.loads(model_text(loaded(one["file"], path)))
    sums = document["model"]["checksums"]
    document["model"]["checksums"] = {**sums, "coef_": "00000000"}
    with refused(ModelFileError, argument="coef_", code="damaged"):
        loaded(document, path)
    document["model"]["checksums"] = {key: sums[key] for key in sums if key != "scale_"}
    with refused(ModelFileError, argument="scale_", code="damaged"):
        loaded(document, path)
    del document["model"]["checksums"]
    assert scores(loaded(document, path), one) == one["expected"]


def test_an_object_under_another_class_and_steps_in_another_order_are_refused(tmp_path):
    path = tmp_path / "model.json"
    document = json.loads(model_text(loaded(MODELS["ridge"]["file"], path)))
    document["model"]["$class"] = "ListNet"
    with pytest.raises(ModelFileError):
        loaded(document, path)
    document = json.loads(model_text(loaded(MODELS["scaler and list-net"]["file"], path)))
    del document["model"]["steps"][0]
    with refused(ModelFileError, argument="steps", code="damaged"):
        loaded(document, path)
