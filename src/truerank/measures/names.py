"""Parse names of measures: `nDCG@10`, `AP(rel=2)`, and trec_eval's `ndcg_cut_10`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeGuard

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.names import Table, nearest
from truerank.core.types import MeasureLike, MeasuresLike
from truerank.measures.average_precision import AveragePrecision, GeometricMAP
from truerank.measures.base import Measure
from truerank.measures.bpref import BinaryPreference
from truerank.measures.conventions import CONVENTIONS, DEFAULT_CONVENTION
from truerank.measures.counts import QueryCount, RelevantCount, RelevantRetrievedCount, RetrievedCount
from truerank.measures.expected_reciprocal_rank import ExpectedReciprocalRank
from truerank.measures.function_measure import FunctionMeasure
from truerank.measures.inferred_ap import InferredAP
from truerank.measures.interpolated_precision import InterpolatedPrecision
from truerank.measures.kendall_tau import KendallTau
from truerank.measures.mean_ndcg import MeanNormalisedDCG
from truerank.measures.ndcg import DiscountedCumulativeGain, NormalisedDCG
from truerank.measures.precision import JudgedShare, Precision, Recall, RPrecision, SetPrecision, SetRecall
from truerank.measures.precision import SetAP as _SetAP
from truerank.measures.precision import SetF as _SetF
from truerank.measures.rank_biased_precision import RankBiasedPrecision
from truerank.measures.reciprocal_rank import ReciprocalRank
from truerank.measures.reciprocal_rank import Success as _Success
from truerank.measures.roc_area import Accuracy as _Accuracy
from truerank.measures.roc_area import ROCArea, WrongPairs
from truerank.measures.trec_measure import TrecMeasure, trec_measure
from truerank.measures.winner_takes_all import WinnerTakesAll

_CUTOFFS = re.compile(r"\b([A-Za-z]\w*)\.(\d+(?:,\d+)+)(?=[\s,]|$)")  # P.5,10 of trec_eval

AP = AveragePrecision()
nDCG = NormalisedDCG()
DCG = DiscountedCumulativeGain()
MeanNDCG = MeanNormalisedDCG()
RR = ReciprocalRank()
WTA = WinnerTakesAll()
P = Precision()
Success = _Success()
R = Recall()
Rprec = RPrecision()
SetP = SetPrecision()
SetR = SetRecall()
SetF = _SetF()
ROC = ROCArea()
ERR = ExpectedReciprocalRank()
RBP = RankBiasedPrecision()
Bpref = BinaryPreference()
Judged = JudgedShare()
SetAP = _SetAP()
SetRelP = SetP(relative=True)
GMAP = GeometricMAP()
infAP = InferredAP()
IPrec = InterpolatedPrecision()
Accuracy = _Accuracy()
NumRet = RetrievedCount()
NumRel = RelevantCount()
NumRelRet = RelevantRetrievedCount()
NumQ = QueryCount()
tau = KendallTau()
pairs = WrongPairs()

_ALL = (
    AP, nDCG, DCG, MeanNDCG, RR, WTA, P, Success, R, Rprec, ROC, ERR, RBP, Bpref, Judged, tau, pairs, SetP, SetR, SetF,
    SetAP, GMAP, infAP, IPrec, Accuracy, NumRet, NumRel, NumRelRet, NumQ,
)  # fmt: skip
# Includes measures of installed packages: entry points "truerank.measures", name -> a class of measures.
MEASURES: Table[Measure] = Table(
    "truerank.measures", {measure.NAME: measure for measure in _ALL}, lambda point: point.load()()
)
# Other common names of these measures; case and underscores do not matter (`hit_rate@10`, `MAP@5`).
SYNONYMS = {
    "MAP": AP, "average_precision": AP, "average_precision_score": AP, "mean_average_precision": AP, "MRR": RR,
    "recip_rank": RR, "reciprocal_rank": RR, "mean_reciprocal_rank": RR, "normalized_discounted_cumulative_gain": nDCG,
    "AUC": ROC, "roc_auc": ROC, "roc_auc_score": ROC, "ndcg_score": nDCG,
    "ndcg_burges": nDCG(gain="exponential"),
    "dcg_burges": DCG(gain="exponential"), "precision": P, "prec": P, "recall": R, "recall_cut": R,
    "precision_at": P, "pre": P, "recall_at": R, "hit_rate": Success, "hit": Success, "HR": Success,
    "hits": NumRelRet, "r_precision": Rprec, "f1": SetF, "set_precision": SetP, "set_recall": SetR,
    "SetRelP": SetRelP, "set_map": SetAP, "gm_map": GMAP, "kendall_tau": tau, "num_rel_ret": NumRelRet,
}  # fmt: skip
_BY_SPELLING = {name.replace("_", "").lower(): measure for name, measure in {**SYNONYMS, **MEASURES.own}.items()}
# Names of trec_eval, which have the convention trec unless trec9 is given.
_TREC: dict[str, Measure] = {
    "map": AP, "ndcg": nDCG, "recip_rank": RR, "bpref": Bpref, "set_P": SetP, "set_recall": SetR, "set_F": SetF,
    "set_map": SetAP, "set_relative_P": SetRelP, "gm_map": GMAP, "num_ret": NumRet, "num_rel": NumRel,
    "num_rel_ret": NumRelRet, "num_q": NumQ,
}  # fmt: skip
_TREC_CUT: dict[str, Measure] = {
    "map_cut": AP,
    "ndcg_cut": nDCG,
    "P": P,
    "recall": R,
    "success": Success,
}

_GRAMMAR = re.compile(r"\s*([A-Za-zα_][A-Za-z_0-9-]*?)(?:\.p?(\d+))?\s*(?:\((.*)\))?\s*(?:@\s*(\S+?))?\s*", re.DOTALL)


def parse_measure(measure: MeasureLike, convention: str = DEFAULT_CONVENTION) -> Measure:
    """Return the measure with a name; settings that the name leaves open come from a convention.

    Any usual spelling of the name is accepted (`"nDCG@10"`, `"AP(rel=2)"`, `"hit_rate@5"`). A measure, an object of
    ir_measures or a function `(grades_in_ranked_order) -> float` is also accepted. trec_eval's names (`"ndcg_cut_10"`)
    have the convention `trec`. Objects of ir_measures follow the rules of their provider there: `trec9`, or `gdeval`,
    or another order of ties, and 0 for topics that a run lacks. Conventions are trec, trec9, gdeval, letor3, letor4,
    mslr, ranklib, lightgbm, xgboost, catboost, sklearn and ranx.
    Raises InvalidInputError for an unknown name or setting, or without a required cutoff.

    >>> parse_measure("nDCG@10")
    nDCG(convention='ranklib')@10
    >>> parse_measure("ndcg_cut_10") == parse_measure("nDCG@10", convention="trec")
    True
    """
    check_choice(convention, "convention", CONVENTIONS)
    if isinstance(measure, Measure):
        return measure.pinned(convention).check()
    if type(measure).__module__.partition(".")[0] == "ir_measures":
        return _as_in_ir_measures(_from_text(str(measure))).check()
    if callable(measure):
        return FunctionMeasure(measure).pinned(convention).check()
    if not isinstance(measure, str):
        raise InvalidInputError(
            f"a measure is a name such as 'nDCG@10', a Measure or a function of the ranked grades, got {measure!r}",
            code="measure",
        )
    return _named(measure, convention)


def _as_in_ir_measures(measure: Measure) -> Measure:
    """Return a measure with the rules of its provider in ir_measures; a topic without a value there counts 0."""
    name, cut = measure.NAME, measure.cutoff is not None
    measure = measure(convention="trec9", missing_topics=measure.DEFAULTS.get("empty", "zero"))
    if name in ("Accuracy", "RBP"):  # the providers accuracy and cwl_eval
        return measure(ties="stable", compare="float64")
    if name == "Judged" or (name == "RR" and cut and not measure.gives("judged_only")):  # judged, msmarco
        return measure(ties="ascending", compare="float64")
    if name == "ERR" or (name == "nDCG" and cut and measure.setting("gain") == "exponential"):
        return measure(convention="gdeval", empty="zero")
    return measure


def parse_measures(measures: MeasuresLike, convention: str = DEFAULT_CONVENTION) -> dict[str, Measure]:
    """Return measures by their given names, from a string of names, a measure, or a sequence of names and measures.

    >>> list(parse_measures("AP nDCG(gain='linear')@10, RR"))
    ['AP', "nDCG(gain='linear')@10", 'RR']
    """
    if isinstance(measures, str):
        items: Iterable[Any] = split_names(measures)
    elif isinstance(measures, Measure) or callable(measures) or not isinstance(measures, Iterable):
        items = [measures]
    else:
        items = [name for item in measures for name in (split_names(item) if _has_cutoffs(item) else [item])]
    result: dict[str, Measure] = {}
    for item in items:
        parsed = parse_measure(item, convention)
        name = item.strip() if isinstance(item, str) else parsed.name
        if name in result and result[name] != parsed:
            raise InvalidInputError(
                f"two different measures are called {name!r}: {result[name]!r} and {parsed!r}. Give their names as "
                "text, or functions with different names",
                code="same-name",
            )
        result[name] = parsed
    if not result:
        raise InvalidInputError("no measure was given. Give, for example, 'AP nDCG@10'", code="no-measure")
    return result


def _has_cutoffs(item: object) -> TypeGuard[str]:
    return isinstance(item, str) and _CUTOFFS.fullmatch(item.strip()) is not None


def split_names(text: str) -> list[str]:
    """Split names at spaces and commas outside of parentheses.

    >>> split_names("AP, RBP(p=0.8, rel=1) P.5,10")  # trec_eval's cutoffs
    ['AP', 'RBP(p=0.8, rel=1)', 'P.5', 'P.10']
    """
    names, depth = [""], 0
    for character in _CUTOFFS.sub(lambda found: " ".join(f"{found[1]}.{k}" for k in found[2].split(",")), text):
        depth += (character == "(") - (character == ")")
        if depth <= 0 and (character.isspace() or character == ","):
            names.append("")
        else:
            names[-1] += character
    return list(filter(None, names))


@lru_cache(maxsize=256)
def _named(text: str, convention: str) -> Measure:
    """Return the measure with a name; all callers share it, because measures are immutable."""
    return _from_text(text, convention).pinned(convention).check()


_CUT_OF_NAME = re.compile(r"([A-Za-z_-]*[A-Za-z])[_-]?(\d+)")
_LONGEST, _DIGITS = 300, 9  # characters of a name, digits of its cutoff


def _from_text(text: str, convention: str = "trec") -> Measure:
    if len(text) > _LONGEST:
        raise InvalidInputError(
            f"the name of a measure may have at most {_LONGEST} characters, but {text[:40]!r}… has {len(text)}"
        )
    odd = next((character for character in text if not character.isprintable() and character not in "\t\r\n"), None)
    if odd is not None:
        raise InvalidInputError(f"the name of a measure contains the unprintable character {odd!r}: {text[:40]!r}")
    head, parenthesis, inside = text.strip().partition("(")
    trec = _trec_measure(head, "trec9" if convention == "trec9" else "trec")
    if trec is not None and not parenthesis:
        return trec
    if isinstance(trec, TrecMeasure) and inside.endswith(")"):
        positional, settings = _arguments(inside[:-1], text)
        return trec(*positional, **settings)
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise InvalidInputError(
            f"cannot read the measure {text!r}. Expected NAME, NAME@cutoff or NAME(setting=value)", code="measure"
        )
    name, persistence, inside, cut = match.groups()
    base = _known(name)
    trailing = _CUT_OF_NAME.fullmatch(name)
    if base is None and trailing and cut is None and (base := _known(trailing[1])) is not None:
        name, cut = trailing.groups()  # nDCG_10, P10
        if base.NAME == "RBP":
            raise InvalidInputError(
                f"{text!r} is ambiguous. Write rbp.{cut} for a persistence, or RBP@{cut} for a cutoff", code="ambiguous"
            )
    if base is not None and persistence and (base.NAME != "RBP" or inside):
        raise InvalidInputError(
            f"cannot read the measure {text!r}: a number after a dot is the p of RBP (rbp.95). Write a cutoff after @ "
            "(nDCG@10), and settings in parentheses (RBP(p=0.95))",
            code="ambiguous",
        )
    if base is None:
        theirs = "trec_eval's map, ndcg, ndcg_cut_k, P_k, recall_k, recip_rank …"
        listed = f"Choose among: {', '.join(MEASURES)}, and {theirs}"
        raise InvalidInputError(
            f"unknown measure {name!r} in {text!r}{nearest(name, (*SYNONYMS, *MEASURES), listed)}",
            code="unknown-measure",
        )
    positional, settings = _arguments(inside or "", text)
    if persistence:
        settings["p"] = float(f"0.{persistence}")  # ranx's rbp.95
    if cut is not None:
        if base.AT in settings:
            raise InvalidInputError(f"{text!r}: the {base.AT} was given twice. Write it once", code="given-twice")
        settings[base.AT] = _after_at(cut, base, text)
    if "dcg" in settings:  # ir_measures's word for gain and discount together
        forms = {"log2": "linear", "exp-log2": "exponential"}
        form = settings.pop("dcg")
        if form not in forms or "gain" in settings:
            raise InvalidInputError(
                f"{text!r}: dcg must be 'log2' or 'exp-log2', without gain, got {form!r}", code="dcg"
            )
        settings |= {"gain": forms[form], "discount": settings.get("discount", "log2")}
    return base(*positional, **settings)


def _known(name: str) -> Measure | None:
    """Return the measure with a name in any usual spelling."""
    own = MEASURES.own.get(name) or _BY_SPELLING.get(name.replace("_", "").replace("-", "").lower())
    return own or MEASURES.get(name)


def _after_at(cut: str, base: Measure, text: str) -> int | float:
    if base.AT != "cutoff":
        try:
            return float(cut)
        except ValueError:
            raise InvalidInputError(
                f"{text!r}: the {base.AT} after @ must be a number, got {cut!r}", code="cutoff"
            ) from None
    if not (cut.isascii() and cut.isdigit() and len(cut) <= _DIGITS):
        raise InvalidInputError(
            f"{text!r}: the cutoff after @ must be an integer >= 1, got {cut!r} (at most {_DIGITS} digits)",
            code="cutoff",
        )
    return int(cut)


def _trec_measure(name: str, version: str) -> Measure | None:
    if name in _TREC:
        return _TREC[name](convention=version)
    if name.startswith("iprec_at_recall_"):
        try:
            return IPrec(recall=float(name.removeprefix("iprec_at_recall_")), convention=version)
        except ValueError:
            return None
    stem, _, cut = name.replace(".", "_").rpartition("_")  # trec_eval reads ndcg_cut.10 and prints ndcg_cut_10
    if stem in _TREC_CUT and cut.isascii() and cut.isdigit() and len(cut) <= _DIGITS and int(cut) > 0:
        return _TREC_CUT[stem](cutoff=int(cut), convention=version)
    return trec_measure(name, version)


def _arguments(inside: str, text: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the values and settings between parentheses, which are literals of Python or bare words (strings)."""
    try:
        call = ast.parse(f"_({inside.strip().rstrip(',')})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        if "repeated" in reason:
            raise InvalidInputError(f"{text!r}: {reason.split(': ')[-1]} was given twice. Write it once") from None
        raise InvalidInputError(
            f"{text!r}: cannot read the value {inside!r}. Expected name=value, …", code="setting"
        ) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "_":
        raise InvalidInputError(
            f"cannot read the measure {text!r}. Expected NAME, NAME@cutoff or NAME(setting=value)", code="measure"
        )
    settings: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in settings:
            raise InvalidInputError(
                f"{text!r}: {keyword.arg or '**'} was given twice. Write it once", code="given-twice"
            )
        settings[keyword.arg] = _value(keyword.value, inside, text)
    return [_value(argument, inside, text) for argument in call.args], settings


def _value(node: ast.expr, inside: str, text: str) -> Any:
    if isinstance(node, ast.Name):
        return {"true": True, "false": False}.get(node.id.lower(), node.id)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InvalidInputError(f"{text!r}: expected a number or a word, got {ast.unparse(node)!r}") from None
