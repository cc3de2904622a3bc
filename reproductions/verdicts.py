"""Verdicts by rule: a published figure or sentence, our figure, and whether it was reproduced.

Each function turns the result of one experiment into rows. `published/*.json` holds the published figures and sentences
with their sources. A panel without one gets no row. The rules:

* A *figure* is reproduced if ours lies within the tolerance of the published one, on either side.
* A *claim* ("A above B") is reproduced if the difference has the published direction and p < 0.05. It is not reproduced
  if the difference has the other direction and p < 0.05. Otherwise it is undecided. A claim that is printed as not
  significant is reproduced if the difference has its direction, and not reproduced as an ordinary claim.
* A claim that is printed *without a test* is reproduced if all parts of it hold, and not reproduced otherwise.
* Each printed claim has one row, under the paper's protocol and by its test. Rows with `setting_of` try the claim under
  other settings (`setting_of` is the item of its row); they are no verdicts of the paper.
* What would be reproduced is undecided if a trivial ranker (constant scores, the best single feature) would pass in the
  place of the ranker of the row. It passes a claim with at least half of the difference that ours has, so that
  rounding cannot pass. A figure that is significantly above the trivial ranker's is not affected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.stats import binomtest, wilcoxon

from reproductions.protocol import TRIVIAL, published
from truerank.core.printing import table

Row = dict[str, Any]
SIGNIFICANT = 0.05
SHARE = 0.5  # of our difference, which a trivial ranker needs to pass in our place
# Standard error of MAP over OHSUMED's 106 queries.
MAP_TOLERANCE = 0.022
TOPICS_TOLERANCE = 0.03  # the same over TREC-9's 50 topics
TAU_TOLERANCE = 0.001


def figure(
    paper: str, item: str, published: float, ours: float, tolerance: float, trivial: Mapping[str, tuple[float, float]]
) -> Row:
    """A row for a published figure; larger figures are better.

    Parameters
    ----------
    trivial : mapping of str to (figure, p)
        The figures of the trivial rankers, and p of ours against them (NaN without a test).
    """

    def near(value: float) -> bool:
        return abs(value - published) <= tolerance

    as_good = [name for name, (value, p) in trivial.items() if near(value) and not (ours > value and p < SIGNIFICANT)]
    verdict = "not reproduced" if not near(ours) else "undecided" if as_good else "reproduced"
    why = f"within the tolerance too: {', '.join(as_good)}" if verdict == "undecided" else ""
    return _row(paper, item, f"{published:.4f} ± {tolerance:g}", f"{ours:.4f}", verdict, why)


def claim(
    paper: str, item: str, published: str, difference: float, p: float, trivial: Mapping[str, tuple[float, float]],
    ours: str = "", significant: bool = True,
) -> Row:  # fmt: skip
    """A row for a comparison.

    Parameters
    ----------
    difference : float
        Positive if ours has the published direction.
    p : float
        Two-sided; NaN counts as 1.
    trivial : mapping of str to (difference, p)
        The same comparison with a trivial ranker in the place of the claim's ranker.
    significant : bool
        Whether the difference is printed as significant.
    """
    as_good = [
        name
        for name, (d, q) in trivial.items()
        if d > 0 and d >= SHARE * difference and (q < SIGNIFICANT or not significant)
    ]
    passed = f"also passes: {', '.join(as_good)}"
    if not significant and difference > 0:
        direction = "the direction" + (", significant here" if p < SIGNIFICANT else "")
        verdict, why = ("undecided", passed) if as_good else ("reproduced", direction)
    elif not p < SIGNIFICANT:
        verdict, why = "undecided", "p is large"
    elif difference <= 0:
        verdict, why = "not reproduced", ""
    else:
        verdict, why = ("undecided", passed) if as_good else ("reproduced", "")
    return _row(paper, item, published, ours or f"{difference:+.4f}, p {_short(p)}", verdict, why)


def untested(paper: str, item: str, published: str, holds: bool, ours: str) -> Row:
    """A row for a claim that is printed without a test."""
    return _row(paper, item, published, ours, "reproduced" if holds else "not reproduced", "")


def setting(row: Row, of: str) -> Row:
    """The row as one of another setting, below the row of a printed claim."""
    return row | {"setting_of": of}


def without_verdicts(rows: Iterable[Row]) -> list[Row]:
    """The rows of a quick run, which shows that everything runs and supports no verdict."""
    return [row | {"verdict": "none", "why": "quick run"} for row in rows]


def _row(paper: str, item: str, published: str, ours: str, verdict: str, why: str) -> Row:
    return {
        "paper": paper, "item": item, "published": published, "ours": ours, "verdict": verdict, "why": why,
        "setting_of": "",
    }  # fmt: skip


def _short(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def adarank_rows(result: dict[str, Any]) -> list[Row]:
    """Figure 2 with its t tests, and figures 6 and 8 to 11: the printed update, and Ranking SVM with the hinge."""
    source, trials = published("adarank"), result["trials"]
    rows = []
    for name, baseline, row in _adarank_above("AdaRank", trials["tests"], "", source["figure 2"]["claim"], True):
        measure = "AP(rel=2)" if "MAP" in name else "nDCG@5"
        family = "Ranking SVM, hinge" if baseline.startswith("Ranking SVM") else baseline
        of = f"{name.split(' (')[0]} (paper) above {family}, {measure}"
        rows.append(row if row["item"] == of else setting(row, of))
    for key, found in trials["training"].items():
        measure, label = key.rsplit(" (", 1)[0], key.rsplit(" (", 1)[1].rstrip(")")
        if label in TRIVIAL:
            continue
        # The best single feature by either measure, in the place of the models trained on them.
        single = _ahead(trials["training"][f"{measure} ({TRIVIAL[0]})"])
        number = "9" if measure == "AP(rel=2)" else "10"
        ours = f"{found['own measure ahead']} of {found['trials']} trials, behind in {found['behind']}"
        items = [f"figure {number}, {measure} ({one}): own measure ahead" for one in (label, "paper")]
        published_text = source[f"figure {number}"]["claim"]
        row = claim("AdaRank", items[0], published_text, *_ahead(found), {TRIVIAL[0]: single}, ours)
        rows.append(row if label == "paper" else setting(row, items[1]))
    return rows + list(_adarank_means(source, trials))


def _adarank_above(
    paper: str, tests: Mapping[str, Any], prefix: str, said: str, significant: bool
) -> Iterable[tuple[str, str, Row]]:
    """(AdaRank's name, baseline, row) of each comparison, with the trivial rankers in AdaRank's place."""
    for key, test in tests.items():
        name, others = key.split(" - ", 1)
        if name in TRIVIAL:
            continue
        trivial = {
            t: (other["difference"], other["p_paired_t"]) for t in TRIVIAL for other in [tests[f"{t} - {others}"]]
        }
        item = f"{prefix}{name} above {others}"
        row = claim(paper, item, said, test["difference"], test["p_paired_t"], trivial, significant=significant)
        yield name, others.rpartition(", ")[0], row


_ADARANK_BASELINES = ("BM25", "Ranking SVM, hinge", "RankBoost")


def _adarank_means(source: Mapping[str, Any], trials: Mapping[str, Any]) -> Iterable[Row]:
    """Claims about means without a test: figure 2 (every measure), figure 6, figure 8 and figure 11."""
    means = {row: {name: one["mean"] for name, one in found.items()} for row, found in trials["means"].items()}
    for update in ("paper", "paper, once", "adaboost"):
        both = [f"AdaRank.MAP ({update})", f"AdaRank.NDCG ({update})"]
        above = _in_every_measure(means, both)
        fewer = [
            means[a][pairs] < means[b][pairs]
            for a in both
            for b in _ADARANK_BASELINES[1:]
            for pairs in ("pairs(2, 0)", "pairs(2, 1)")
        ]
        for number, held, what in (("2", above, "above the baselines in every measure"),
                                   ("6", fewer, "fewer wrong d-n and d-p pairs")):  # fmt: skip
            items = [f"figure {number} ({one}): {what}" for one in (update, "paper")]
            text = source[f"figure {number}" if number == "6" else "figure 2, all measures"]["claim"]
            row = untested("AdaRank", items[0], text, all(held), f"{sum(held)} of {len(held)} comparisons")
            yield row if update == "paper" else setting(row, items[1])
        peak = trials["peaks"][update]
        ours = f"{peak['first']:.4f}, at most {peak['best']:.4f} in round {peak['round']}"
        items = [f"figure 11 ({one}): training MAP rises until its peak" for one in (update, "paper")]
        row = untested("AdaRank", items[0], source["figure 11"]["claim"], peak["round"] > 1, ours)
        yield row if update == "paper" else setting(row, items[1])
    found = trials["groups"]["MAP"]
    differences = np.subtract(found["AdaRank.MAP"], found["RankBoost"])
    ours = f"{differences.mean():+.4f}; with fewer than 3,000 pairs {differences[:3].mean():+.4f}"
    yield untested("AdaRank", "figure 8: MAP over the groups of queries", source["figure 8"]["claim"],
                   bool(differences.mean() > 0 and differences[:3].mean() > 0), ours)  # fmt: skip


def _in_every_measure(means: Mapping[str, Mapping[str, float]], both: Iterable[str]) -> list[bool]:
    """Whether each of both AdaRanks is above each baseline in each measure."""
    return [
        value > means[baseline][name]
        for one in both
        for baseline in _ADARANK_BASELINES
        for name, value in means[one].items()
        if not name.startswith("pairs")
    ]


def _ahead(found: Mapping[str, Any]) -> tuple[float, float]:
    """Trials with the own measure ahead, less those with it behind, and p of a sign test without the ties."""
    ahead, behind = found["own measure ahead"], found["behind"]
    return ahead - behind, float(binomtest(ahead, ahead + behind).pvalue) if ahead + behind else math.nan


def letor_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of the learners with published figures."""
    rows = []
    for name, part in result["collections"].items():
        for learner, row in part["learners"].items():
            if "MAP" in row["published"]:
                trivial = {t: (values["MAP"], values["p"][learner]) for t, values in part["trivial"].items()}
                item, ours = f"{learner}, {name} MAP", row["test"]["MAP"]
                rows.append(figure("LETOR", item, row["published"]["MAP"], ours, MAP_TOLERANCE, trivial))
    return rows


def descent_rows(result: dict[str, Any]) -> list[Row]:
    """The article's two figures with its seed, and its claim over random splits."""
    found, splits = result["diabetes"], result["splits"]
    trivial = {name: (tau, math.nan) for name, tau in result["trivial"].items()}
    rows = [
        figure("descent", label, value, found[label]["tau"]["mean"], TAU_TOLERANCE, trivial)
        for label, value in published("descent")["tau"].items()
    ]
    test = splits["tests"]["descent - linear SVR, defaults"]
    others = {
        t: (other["difference"], other["p"])
        for t in TRIVIAL
        for other in [splits["tests"][f"{t} - linear SVR, defaults"]]
    }
    ours = f"{test['difference']:+.4f}, ahead in {test['above']} of {splits['n']} splits, p {_short(test['p'])}"
    said = published("descent")["claim"]
    rows.append(
        claim(
            "descent", "RankSVM by descent above the article's SVR", said, test["difference"], test["p"], others, ours
        )
    )
    return rows


LOSSES = ("log_loss", "squared_error", "error")
LAPLACE = "asymmetric-laplace"
MICRO_LEVEL = 0.01  # of the paper's sign test over decisions on which two methods disagree
_SETTINGS = {"linear SVM, tf-idf": "linear SVM, log tf"}


def calibration_rows(result: dict[str, Any]) -> list[Row]:
    """By panel with a published table: the printed marks by the paper's sign test, then single sums by a t test."""
    rows: list[Row] = []
    tables = published("calibration")["tables"]
    for panel, part in result["panels"].items():
        if result.get("collection") == "ten newsgroups":
            # The direction of claims that need no figure of the paper, which has those of other collections.
            for item, row in _calibration_marks(panel, part, tables[part["classifier"]], result["trivial"]):
                if item in _ON_STAND_INS:
                    text = "the fewest" if item == _marked("error") else row["published"]
                    rows.append(row | {"paper": "calibration, stand-in", "published": text})
            continue
        if part["classifier"] not in tables or "script" in part:
            continue
        table_of, main = tables[part["classifier"]], _SETTINGS.get(panel, panel)
        for item, row in _calibration_marks(panel, part, table_of, result["trivial"]):
            rows.append(row if panel == main else setting(row, f"{main}: {item}"))
        for column, loss in enumerate(LOSSES):
            for method, found in part["against"][loss].items():
                if method not in table_of:
                    continue
                theirs, laplace = table_of[method][column], table_of[LAPLACE][column]
                behind = theirs < laplace if loss == "log_loss" else theirs > laplace
                sign = 1.0 if behind else -1.0
                trivial = {
                    t: (sign * one[loss][method]["difference"], one[loss][method]["p"])
                    for t, one in result["trivial"].items()
                }
                side = "better" if behind else "worse"
                item = f"{panel}, {loss.replace('_', ' ')}: A. Laplace {side} than {method}"
                figures = f"{laplace:g} against {theirs:g}"
                row = claim("calibration", item, figures, sign * found["difference"], found["p"], trivial)
                printed = _marked(loss) if main == "naive Bayes" or loss == "error" else _more_wins(loss)
                rows.append(setting(row, f"{main}: {printed}"))
    return rows


def _more_wins(loss: str) -> str:
    return f"no form of LogReg wins more often than A. Laplace, {loss.replace('_', ' ')}"


def _marked(loss: str) -> str:
    return "A. Laplace has the fewest errors" if loss == "error" else f"A. Laplace, {loss.replace('_', ' ')}"


_ON_STAND_INS = (_more_wins("log_loss"), _more_wins("squared_error"), _marked("error"))


def _calibration_marks(
    panel: str, part: Mapping[str, Any], table_of: Mapping[str, Any], trivial: Mapping[str, Any]
) -> Iterable[tuple[str, Row]]:
    """The claims of a panel as printed: (item without the panel, row)."""
    others = [name for name in table_of if name not in (LAPLACE, "uncalibrated")]
    for loss in LOSSES[:2]:
        item = _marked(loss)
        wins = {name: _wins(part, name, loss) for name in others if name != "asymmetric-gaussian"}
        ahead = [part["against"][loss][name]["difference"] > 0 for name in wins]
        held = [won > lost and p < MICRO_LEVEL for won, lost, p in wins.values()]
        as_good = [
            t for t, one in trivial.items()
            if all(one[loss][name]["difference"] >= SHARE * part["against"][loss][name]["difference"] > 0
                   and one[loss][name]["p"] < SIGNIFICANT for name in wins)
        ]  # fmt: skip
        ours = "; ".join(f"{name} {won}/{lost}" for name, (won, lost, _) in wins.items())
        if panel.startswith("naive Bayes"):
            text = "better sum, and significantly more wins than all methods but A. Gauss"
            verdict = "undecided" if as_good else "reproduced" if all(ahead) and all(held) else "not reproduced"
            yield item, _row("calibration", f"{panel}: {item}", text, ours, verdict, ", ".join(as_good))
        rivals = [name for name in ("logistic", "platt") if name in table_of]
        pairs = {name: _wins(part, name, loss) for name in rivals}
        item = _more_wins(loss)
        ours = "; ".join(f"{name} {lost}/{won}" for name, (won, lost, _) in pairs.items())
        yield item, untested("calibration", f"{panel}: {item}", "no more wins than losses",
                             all(won > lost for won, lost, _ in pairs.values()), ours)  # fmt: skip
    item = _marked("error")
    errors = {name: part["ours"][name]["errors"] for name in (LAPLACE, *others)}
    ours = f"{errors[LAPLACE]}; the others at least {min(errors[name] for name in others)}"
    yield item, untested("calibration", f"{panel}: {item}", f"{table_of[LAPLACE][2]}, the fewest",
                         all(errors[LAPLACE] < errors[name] for name in others), ours)  # fmt: skip
    item = "A. Gauss loses on log loss by a few decisions"
    won, lost, _ = _wins(part, "asymmetric-gaussian", "log_loss")
    behind = part["against"]["log_loss"]["asymmetric-gaussian"]["difference"]
    ours = f"wins {lost}/{won}, sum worse by {behind:.1f} nats"
    said = "sometimes more wins than A. Laplace, never the better sum"
    yield item, untested("calibration", f"{panel}: {item}", said, bool(lost > won and behind > 0), ours)


def _wins(part: Mapping[str, Any], method: str, loss: str) -> tuple[int, int, float]:
    """Decisions on which A. Laplace is better than a method, and worse, and p of the sign test."""
    for test in part["sign_tests"]:
        if {test["a"], test["b"]} == {LAPLACE, method}:
            found = test[loss]
            won, lost = found["wins"], found["losses"]
            return (won, lost, found["p"]) if test["a"] == LAPLACE else (lost, won, found["p"])
    raise KeyError(method)


def oblivious_rows(result: dict[str, Any]) -> list[Row]:
    """Tables 2 to 4 on fold 1 (the thesis has one split) with polynomials in two rounds, then other settings."""
    rows: list[Row] = []
    source = {(row["a"], row["b"]): row for row in published("oblivious")["p"]}
    for name, part in result["collections"].items():
        for stop, key, text in (("nDCG@5", "ranklib", "nDCG@5"), ("squared error", "mse", "squared error")):
            for scope, tests in part["tests"][stop].items():
                for test in tests:
                    a, b = test["a"], test["b"]
                    thesis = "polynomial" if b == "two-rounds" else b
                    said = source[a, thesis][key] if test["figure"] == key else 1.0
                    if said >= SIGNIFICANT:
                        continue
                    trivial = {}
                    for t, values in part["trivial"].items():
                        # On squared error the claim is that b is better (less) than a.
                        other = np.mean(part["values"][stop][b if key == "ranklib" else a][scope][key])
                        ahead = values[scope][key] - other if key == "ranklib" else other - values[scope][key]
                        trivial[t] = (float(ahead), 0.0)
                    word = "above" if key == "ranklib" else "has more than"
                    row = claim("oblivious", f"{name}, {scope}, {text}: {a} {word} {b}", f"p {said:.2g}, one-sided",
                                test["difference"], min(1.0, 2 * test["p"]), trivial)  # fmt: skip
                    of = f"mq2008, fold 1, {text}: {a} {word} {'two-rounds' if thesis == 'polynomial' else b}"
                    rows.append(row if row["item"] == of else setting(row, of))
        rows += _list_net_rows(name, part)
        rows += _curve_rows(name, result["curves"][name])
    return rows


def _list_net_rows(name: str, part: Mapping[str, Any]) -> Iterable[Row]:
    """Table 4: ListNet above the best trees, by a signed rank test of the runs against its one figure."""
    said = published("oblivious")
    of = "mq2008, fold 1, nDCG@5: ListNet above fuzzy"
    for scope, found in part["list-net"].items():
        runs = np.asarray(part["values"]["nDCG@5"]["fuzzy"][scope]["ranklib"])
        p = float(wilcoxon(found["ranklib"] - runs).pvalue) if len(runs) > 5 else math.nan
        difference = float(found["ranklib"] - runs.mean())
        text = f"{said['list-net']:.4f} against {said['ndcg@5']['fuzzy'][0]:.4f}"
        row = claim("oblivious", f"{name}, {scope}, nDCG@5: ListNet above fuzzy", text, difference, p, {})
        yield row if row["item"] == of else setting(row, of)


def _curve_rows(name: str, curves: Mapping[str, Mapping[str, list[float]]]) -> Iterable[Row]:
    """Figures 3 and 4 (more smoothing learns more slowly), and 5 and 6 (fuzzy trees fit less and generalise better)."""
    found = []
    for number, what in (("figure 3", "larger pSwap, larger training error"),
                         ("figure 4", "larger λ, larger training error")):  # fmt: skip
        ends = [values[-1] for values in curves[number].values()]
        ours = ", ".join(f"{end:.4f}" for end in ends)
        found.append((f"{number}: {what}", len(ends) > 1 and sorted(set(ends)) == ends, ours))
    train, test = ({kind: values[-1] for kind, values in curves[f"figure {k}"].items()} for k in (5, 6))
    fuzzy, plain = "fuzzy borders", "plain"
    ours = "; ".join(f"{kind} {train[kind]:.4f} and {test[kind]:.4f}" for kind in (fuzzy, plain))
    holds = train[fuzzy] > train[plain] and test[fuzzy] < test[plain]
    found.append(("figures 5 and 6: fuzzy has the larger training and the smaller test error", holds, ours))
    for item, holds, ours in found:
        row = untested("oblivious", f"{name}, {item}", "drawn", holds, ours)
        yield row if name == "mq2008" else setting(row, f"mq2008, {item}")


def svm_map_rows(result: dict[str, Any]) -> list[Row]:
    """MAP of tables 10 and 11, and wins and losses of SVM-MAP; stand-ins for TREC-10's runs have no MAP to match."""
    rows: list[Row] = []
    source, table_of = published("svm_map"), result.get("table", "trec-9")
    paper = "SVM-MAP" if table_of == "trec-9" else "SVM-MAP, stand-in"
    for title in ("all runs", "without the best run"):
        part, target, wins = result[title], source["map"][table_of][title], source["wins"][table_of][title]
        for name, value in part["MAP"].items() if table_of == "trec-9" else ():
            if name in target and name.startswith("svm"):
                trivial = {t: (found["MAP"], found[name]["p"]) for t, found in part["trivial"].items()}
                rows.append(figure(paper, f"{name}, {title}, MAP", target[name], value, TOPICS_TOLERANCE, trivial))
        rows += _svm_map_wins(paper, part, wins, f", {title}")
    return rows


def _svm_map_wins(paper: str, part: Mapping[str, Any], wins: Mapping[str, str], where: str) -> list[Row]:
    """A row for each printed comparison of SVM-MAP, by Wilcoxon's test over the topics."""
    rows = []
    for name, test in part["against"].items():
        if name in wins and name != "svm-map":
            trivial = {t: (-found[name]["difference"], found[name]["p"]) for t, found in part["trivial"].items()}
            ours = f"{test['difference']:+.4f}, {test['wins']}/{test['losses']}, p {_short(test['p'])}"
            rows.append(
                claim(paper, f"above {name}{where}", wins[name], test["difference"], test["p"], trivial, ours,
                      significant="**" in wins[name])
            )  # fmt: skip
    return rows


def stand_ins_rows(result: dict[str, Any]) -> list[Row]:
    """Tables 6 and 9 of SVM-MAP, with the marks of TREC-9, and figures 3 to 5 of AdaRank, by collection."""
    rows: list[Row] = []
    wins = published("svm_map")["wins"]["trec-9"]["indri functions"]
    for name, part in result["functions"].items():
        rows += _svm_map_wins("SVM-MAP, stand-in", part, wins, f", {name}")
    for name, part in result["boosting"].items():
        means = {row: {key: one["mean"] for key, one in found.items()} for row, found in part["means"].items()}
        for update in ("paper", "adaboost"):
            above = _in_every_measure(means, [f"AdaRank.{one} ({update})" for one in ("MAP", "NDCG")])
            items = [f"{name} ({one}): above the baselines in every measure" for one in (update, "paper")]
            ours = f"{sum(above)} of {len(above)} comparisons"
            row = untested("AdaRank, stand-in", items[0], "above all baselines", all(above), ours)
            rows.append(row if update == "paper" else setting(row, items[1]))
        of = f"{name} (paper): above the baselines in every measure"
        found = _adarank_above("AdaRank, stand-in", part["tests"], f"{name}, ", "above", significant=False)
        rows += [setting(row, of) for _, _, row in found]
    return rows


ROWS: dict[str, Callable[[dict[str, Any]], list[Row]]] = {
    "adarank": adarank_rows,
    "letor": letor_rows,
    "descent": descent_rows,
    "calibration": calibration_rows,
    "oblivious": oblivious_rows,
    "svm-map": svm_map_rows,
    "stand-ins": stand_ins_rows,
}


def overview_table(rows: Iterable[Row]) -> str:
    """The rows as text."""
    names = ["paper", "item", "published", "ours", "verdict", "why"]
    cells = [["  setting" if row["setting_of"] else row["paper"], *(row[name] for name in names[1:])] for row in rows]
    return table(cells, names)
