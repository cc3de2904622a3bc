"""The grammar of measures' names: printing and parsing are inverses; every refusal says what is wrong."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.measures import (
    AP,
    CONVENTIONS,
    GMAP,
    MEASURES,
    RBP,
    RR,
    IPrec,
    NumQ,
    NumRelRet,
    P,
    R,
    Rprec,
    SetF,
    SetP,
    Success,
    nDCG,
    pairs,
    parse_measure,
    parse_measures,
)
from truerank.models.model_file import decode, encode

SETTINGS = {
    "rel": st.sampled_from([1, 2, 0.5]),
    "gain": st.sampled_from(["linear", "exponential"]),
    "discount": st.sampled_from(["log2", "letor"]),
    "ties": st.sampled_from(["stable", "trec", "optimistic", "pessimistic"]),
    "empty": st.sampled_from(["zero", "one", "skip"]),
    "missing_topics": st.sampled_from(["zero", "skip"]),
    "judged_only": st.booleans(),
    "convention": st.sampled_from(sorted(CONVENTIONS)),
    "cutoff": st.integers(1, 1000),
    "p": st.sampled_from([0.5, 0.95]),
    "a": st.sampled_from([2, 1]),
    "b": st.sampled_from([0, -1]),
    "recall": st.sampled_from([0.0, 0.1, 1]),
    "beta": st.sampled_from([0.5, 2]),
    "gains": st.sampled_from([{0: 1, 1: 4}, {2: 0.5}]),
}


@given(st.data())
def test_parsing_inverts_printing(data):
    measure = MEASURES[data.draw(st.sampled_from(sorted(MEASURES)))]
    names = [name for name in SETTINGS if name in (*measure.OWN, "ties", "empty", "judged_only", "convention")]
    chosen = set(data.draw(st.lists(st.sampled_from(names), unique=True))) | set(measure.REQUIRED)
    made = measure(**{name: data.draw(SETTINGS[name]) for name in sorted(chosen)})
    if made.convention == "sklearn" or made.setting("ties") in ("average", "end"):
        made = made(ties="stable")
    made = made.pinned("letor3")
    assert parse_measure(repr(made)) == made
    assert hash(parse_measure(repr(made))) == hash(made)
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made
    assert decode(encode(made)) == made
    names_again = parse_measures(f"AP, {made.name}  RR@3")
    assert len(names_again) == 3 - (made.name in ("AP", "RR@3"))


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("AP", AP),
        ("AP(rel=2)", AP(rel=2)),
        ("nDCG@10", nDCG @ 10),
        ("nDCG(gain=linear)@10", nDCG(gain="linear") @ 10),
        (" nDCG( gain = 'linear' , cutoff=10 ) ", nDCG(gain="linear", cutoff=10)),
        ("nDCG(dcg='log2')@10", nDCG(gain="linear", discount="log2") @ 10),
        ("RBP(0.5)", RBP(p=0.5)),
        ("RBP(p=0.5,rel=2)", RBP(0.5, rel=2)),
        ("pairs(0,2)", pairs(0, 2)),
        ("AP(judged_only=True)", AP(judged_only=True)),
        ("MAP", AP),
        ("MRR@5", RR @ 5),
        ("NDCG@5", nDCG @ 5),
        ("ndcg@10", nDCG @ 10),
        ("Recall@10", R @ 10),
        ("hit_rate@10", Success @ 10),
        ("precision@3", P @ 3),
        ("pre@3", P @ 3),
        ("PrecisionAt@3", P @ 3),
        ("HR@3", Success @ 3),
        ("hits@5", NumRelRet @ 5),
        ("MAP@5", AP @ 5),
        ("nDCG_10", nDCG @ 10),
        ("NDCG10", nDCG @ 10),
        ("hit-rate_5", Success @ 5),
        ("P5", P @ 5),
        ("r-precision", Rprec),
        ("f1@10", SetF @ 10),
        ("mean_average_precision", AP),
        ("rbp.95", RBP(0.95)),
        ("rbp.p80", RBP(0.8)),
        ("IPrec@0.1", IPrec @ 0.1),
        ("nDCG(gains={0: 1, 1: 4})@3", nDCG(gains={1: 4, 0: 1}) @ 3),
    ],
)
def test_names(text, measure):
    assert parse_measure(text) == measure.pinned("ranklib")


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("map", AP),
        ("map_cut_100", AP @ 100),
        ("ndcg", nDCG),
        ("ndcg_cut_10", nDCG @ 10),
        ("recip_rank", RR),
        ("P_5", P @ 5),
        ("ndcg_cut.10", nDCG @ 10),
        ("set_P", SetP),
        ("gm_map", GMAP),
        ("iprec_at_recall_0.10", IPrec @ 0.1),
        ("num_q", NumQ),
    ],
)
def test_trec_eval_names_are_pinned(name, measure):
    assert parse_measure(name, "lightgbm") == measure(convention="trec")


def test_a_convention_fills_in_what_is_open_and_no_more():
    assert parse_measure(nDCG @ 10, "letor4").setting("discount") == "letor"
    assert parse_measure("nDCG(discount='log2')@10", "letor4").setting("discount") == "log2"
    assert parse_measure(parse_measure("nDCG@10", "trec"), "letor4").convention == "trec"
    assert (nDCG @ 10).setting("gain") == "exponential"


def test_measures_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        AP.cutoff = 3
    with pytest.raises(AttributeError, match="immutable"):
        del AP.cutoff
    assert AP @ 5 != AP
    assert repr(AP) == "AP"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", {"code": "no-measure"}),
        ("nDGC@10", {"code": "unknown-measure"}),
        ("foo", {"code": "unknown-measure"}),
        ("nDCG@", {"code": "measure"}),
        ("nDCG@ten", {"code": "cutoff"}),
        ("nDCG@0", {"code": "setting"}),
        ("nDCG@-1", {"code": "cutoff"}),
        ("nDCG@²", {"code": "cutoff"}),
        ("nDCG@99999999999999999999", {"code": "cutoff"}),
        ("nDCG(cutoff=3)@5", {"code": "given-twice"}),
        ("nDCG(gain='cubic')@5", {"code": "setting"}),
        ("nDCG(gain)@5", {"code": "positional"}),
        ("nDCG(speed=3)", {"code": "unknown-setting"}),
        ("AP(rel=0)", {"code": "setting"}),
        ("AP(rel=[1])", {"code": "setting"}),
        ("AP(rel=x)", {"code": "setting"}),
        ("AP(rel=1;2)", {"code": "setting"}),
        ("AP(rel=1,rel=2)", {"code": "given-twice"}),
        ("P", {"code": "no-cutoff"}),
        ("pairs(1)", {"code": "no-cutoff"}),
        ("RBP(1.5)", {"code": "setting"}),
        ("ERR(ties='average')", {"code": "no-average"}),
        ("nDCG(ties='end')", {"code": "ties"}),
        ("AP(ties='coin')", {"code": "setting"}),
        ("AP(empty='half')", {"code": "setting"}),
        ("AP(convention='bing')", {"code": "setting"}),
        ("nDCG(dcg='exp')", {"code": "dcg"}),
        ("recal@5", {"code": "unknown-measure"}),
        ("IPrec@2", {"code": "setting"}),
        ("IPrec@x", {"code": "cutoff"}),
        ("IPrec", {"code": "no-cutoff"}),
        ("nDCG(gains={0:'x'})", {"code": "setting"}),
        ("map_cut_0", {"code": "unknown-measure"}),
        ("nDCG_10@5", {"code": "unknown-measure"}),
        ("rbp.95(p=0.5)", {"code": "ambiguous"}),
        ("RBP95", {"code": "ambiguous"}),
        ("ndcg.0", {"code": "ambiguous"}),
    ],
)
def test_refusals(text, message):
    with refused(InvalidInputError, **message):
        parse_measures(text)


@pytest.mark.parametrize("two", [[AP, AP(convention="trec")], [lambda grades: 0.0, lambda grades: 1.0]])
def test_of_two_measures_of_one_name_none_is_lost(two):
    with refused(InvalidInputError, code="same-name"):
        parse_measures(two)
    assert list(parse_measures(["AP", AP, "AP(convention='trec')"])) == ["AP", "AP(convention='trec')"]


@given(st.text(alphabet="nDCGAPRmap_cut@()=,.'0123456789eE+-[]{} \"\\\x00é²", max_size=25))
def test_any_text_is_a_measure_or_an_error(text):
    for candidate in (text, f"nDCG({text})", f"AP(rel={text})", f"P@{text}"):
        try:
            measure = parse_measure(candidate)
        except InvalidInputError:
            continue
        assert parse_measure(repr(measure)) == measure


@pytest.mark.parametrize("value", [3, None, ["AP"], 0.5])
def test_what_is_no_measure(value):
    with refused(InvalidInputError, code="measure"):
        parse_measure(value)


def test_an_unknown_convention():
    with refused(InvalidInputError, argument="convention"):
        parse_measure("AP", "bing")


def test_a_function_goes_into_no_model_file():
    with refused(InvalidInputError, code="cannot-keep"):
        encode(parse_measure(len))


@pytest.mark.parametrize("text", ['gm_bpref(root="map")', "relative_P_5(parameter=2)", "gm_bpref(3)"])
def test_a_setting_cannot_replace_the_name_of_a_measure_of_trec_eval(text):
    with refused(InvalidInputError, code="positional"):
        parse_measure(text)
