"""Click logs: what is read, what is refused and where, and what is left out and counted."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas
import pytest

from support.refusals import refused
from truerank import ClickLog, read_clicks, write_run
from truerank.cli import main
from truerank.clicks.checkup import examine_log
from truerank.clicks.log import NO_TIME, NOT_SHOWN, OTHER
from truerank.core.errors import DataFileError, InvalidInputError

ROWS = {
    "impression": ["i1", "i1", "i2", "i2", "i2"],
    "query": ["cat", "cat", "dog", "dog", "dog"],
    "document": ["a", "b", "b", "c", "a"],
    "position": [1, 2, 1, 2, 3],
    "clicked": [0, 1, 0, 0, 1],
    "ranker": ["x", "x", "y", "y", "y"],
}


def frame(**changes):
    return pandas.DataFrame(ROWS | changes)


def told(log):
    """The rows of a log as ids again."""
    return list(
        zip(log.impression.tolist(), log.query_ids[log.query].tolist(), log.document_ids[log.document].tolist(),
            log.position.tolist(), log.clicked.tolist())
    )  # fmt: skip


EXPECTED = [(0, "cat", "a", 1, False), (0, "cat", "b", 2, True), (1, "dog", "b", 1, False), (1, "dog", "c", 2, False),
            (1, "dog", "a", 3, True)]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl", "jsonl.gz", "csv.gz"])
def test_every_format_gives_the_same_log(tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    if ending == "parquet":
        frame().to_parquet(path)
    elif ending == "arrow":
        frame().to_feather(path)
    elif "jsonl" in ending:
        frame().to_json(path, orient="records", lines=True)
    else:
        frame().to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    log = read_clicks(path)
    assert told(log) == EXPECTED
    assert log.ranker_ids[log.ranker].tolist() == ROWS["ranker"]
    assert log.time is None


def test_a_frame_and_columns_by_other_names(tmp_path):
    other = frame().rename(columns={"document": "sku", "position": "rank"})
    names = {"document": "sku", "position": "rank"}
    assert told(read_clicks(other, columns=names)) == EXPECTED
    other["rank"] -= 1
    assert told(read_clicks(other, columns=names, first_position=0)) == EXPECTED
    with refused(InvalidInputError, argument="columns", code="no-column"):
        read_clicks(other)
    nested = tmp_path / "log.jsonl"
    nested.write_text(
        "\n".join(json.dumps({**{k: v for k, v in row.items() if k != "ranker"}, "x": {"bucket": row["ranker"]}})
                  for row in frame().to_dict("records"))
    )  # fmt: skip
    assert read_clicks(nested, columns={"ranker": "x.bucket"}).ranker_ids.tolist() == ["x", "y"]


def test_rows_may_come_in_any_order():
    shuffled = frame().iloc[[4, 1, 3, 0, 2]]
    log = read_clicks(shuffled)
    assert sorted(told(log)[:3], key=lambda row: row[3]) == [(0, *row[1:]) for row in EXPECTED[2:]]
    assert np.array_equal(np.diff(log.offsets), [3, 2])


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"position": [1, 3, 1, 2, 3]}, "gap", {"code": "gap", "line": 3}),
        ({"position": [1, 2, 1, 1, 2]}, "position twice", {"code": "position-twice", "line": 5}),
        ({"position": [1, 2, 0, 1, 2]}, "position", {"code": "position", "line": 4}),
        ({"position": [1, 1.5, 1, 2, 3]}, "position", {"code": "position", "line": 3}),
        ({"document": ["a", "b", "b", "c", "b"]}, "document twice", {"code": "document-twice", "line": 6}),
        ({"clicked": [0, 2, 0, 0, 1]}, "clicked", {"code": "clicked", "line": 3}),
        ({"query": ["cat", "cow", "dog", "dog", "dog"]}, "two queries", {"code": "two-queries", "line": 3}),
        ({"ranker": ["x", "z", "y", "y", "y"]}, "two rankers", {"code": "two-rankers", "line": 3}),
        (
            {"document": ["a", None, "b", "c", "a"]},
            "missing id",
            {"code": "missing-id", "line": 3},
        ),
    ],
)
def test_bad_rows_are_refused_by_line_or_counted(tmp_path, changes, reason, message):
    path = tmp_path / "log.csv"
    frame(**changes).to_csv(path, index=False)
    with refused(DataFileError, **message):
        read_clicks(path)
    log = read_clicks(path, bad="skip")
    assert log.skipped == {reason: 1}
    assert log.n_impressions == 1
    assert len({row[1] for row in told(log)}) == 1


def test_a_log_without_a_good_impression_says_so():
    with refused(InvalidInputError, code="no-impression"):
        ClickLog([1, 2], ["a", "b"], ["d", "e"], [2, 2], [0, 1], bad="skip")
    with refused(InvalidInputError, code="no-rows"):
        ClickLog([], [], [], [], [])
    with refused(InvalidInputError, argument="document"):
        ClickLog([1, 2], ["a", "b"], ["d"], [1, 1], [0, 1])


def event(action, document, position, query="q1"):
    return {
        "action_name": action, "query_id": query, "client_id": "c", "user_query": "cat",
        "timestamp": "2026-01-01T00:00:00Z",
        "event_attributes": {"object": {"object_id": document}, "position": {"ordinal": position}},
    }  # fmt: skip


def test_ubi_events(tmp_path):
    events, queries = tmp_path / "events.ndjson", tmp_path / "queries.ndjson"
    shown = [event("impression", "a", 1), event("impression", "b", 2), event("impression", "b", 2)]
    rows = [*shown, event("click", "b", 2), {"action_name": "login"}]
    events.write_text("\n".join(json.dumps({"_source": row}) for row in rows))
    with refused(InvalidInputError, argument="format"):  # a frame is a table
        read_clicks(pandas.DataFrame(shown), format="ubi")
    log = read_clicks(events, format="ubi")
    assert told(log) == [(0, "cat", "a", 1, False), (0, "cat", "b", 2, True)]
    assert (log.session_ids.tolist(), log.time.tolist()) == (["c"], [1767225600 * 10**9] * 2)
    hits = {
        "query_id": "q1",
        "user_query": "cat",
        "query_response_hit_ids": ["c", "b", "a"],
        "query_attributes": {"arm": "B"},
    }
    queries.write_text(json.dumps(hits))
    log = read_clicks(events, queries, format="ubi", columns={"ranker": "query_attributes.arm"})
    assert told(log) == [(0, "cat", "c", 1, False), (0, "cat", "b", 2, True), (0, "cat", "a", 3, False)]
    assert log.ranker_ids.tolist() == ["B"]
    with open(events, "a") as more:
        more.write("\n" + json.dumps(event("click", "z", 9)))
    with refused(DataFileError, code="not-shown", line=6):
        read_clicks(events, format="ubi")
    assert read_clicks(events, format="ubi", bad="skip").skipped == {NOT_SHOWN: 1, OTHER: 1}
    with refused(DataFileError, argument="shown_action", code="nothing-shown"):
        read_clicks(events, format="ubi", shown_action="view")


def test_damaged_json_names_the_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"impression": 1, "query": "a", "document": "b", "position": 1, "clicked": 0}\n{"impression": \n')
    with refused(DataFileError, code="not-json", line=2):
        read_clicks(path)
    path.write_text("[1, 2]\n")
    with refused(DataFileError, code="not-json", line=1):
        read_clicks(path)
    with gzip.open(tmp_path / "log.xyz", "wb") as other:
        other.write(b"x")
    with refused(DataFileError, code="file-name"):
        read_clicks(tmp_path / "log.xyz")


def test_ubi_of_real_exports(tmp_path):
    """Names with dots, objects in text, ordinals as text, offsets in times, and ids that are lists."""
    path = tmp_path / "events.ndjson"
    flat = {"action_name": "impression", "query_id": "q1", "user_query": "cat", "session_id": "s",
            "timestamp": "2026-01-01T01:00:00.250+01:00", "event_attributes.object.object_id": "a",
            "event_attributes.position.ordinal": 1}  # fmt: skip
    nested = event("impression", "b", "2")
    nested["event_attributes"] = json.dumps(nested["event_attributes"])
    mixed = event("click", "b", 2) | {"event_attributes": {"object": {"object_id": "b"}, "position.ordinal": 2}}
    path.write_text("\n".join(json.dumps(row) for row in (flat, nested, mixed)))
    log = read_clicks(path, format="ubi", columns={"session": "session_id"})
    assert told(log) == [(0, "cat", "a", 1, False), (0, "cat", "b", 2, True)]
    assert log.time.tolist() == [(1767225600 * 1000 + 250) * 10**6] * 2
    path.write_text(json.dumps(event("impression", ["a", "b"], 1)))
    with pytest.raises(DataFileError, match=r"line 1: event_attributes.object.object_id must be text or a number"):
        read_clicks(path, format="ubi")
    path.write_text(json.dumps({"hits": {"hits": [{"_source": event("impression", "a", 1)}] * 2}}))
    assert told(read_clicks(path, format="ubi")) == [(0, "cat", "a", 1, False)]
    path.write_text(json.dumps(event("impression", "a", "first")))
    with refused(DataFileError, code="position", line=1):
        read_clicks(path, format="ubi")


def test_values_that_are_no_numbers_are_refused_by_line(tmp_path):
    rows = [dict(zip(ROWS, values)) for values in zip(*ROWS.values())]
    rows[3]["position"], path = "two", tmp_path / "log.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)))
    with refused(DataFileError, code="position", line=7):
        read_clicks(path)
    assert read_clicks(path, bad="skip").n_impressions == 1


def test_times_with_and_without_a_zone():
    times = ["2026-01-01T00:00:00Z", "2026-01-01 00:00:00", "2026-01-01T02:00:00+02:00", "2026-01-01"]
    log = ClickLog([1, 2, 3, 4], ["q"] * 4, ["d"] * 4, [1] * 4, [0] * 4, time=times)
    assert set(log.time.tolist()) == {1767225600 * 10**9}
    with refused(InvalidInputError, code="time"):
        ClickLog([1, 2], ["q"] * 2, ["d"] * 2, [1, 1], [0, 0], time=["2026-01-01", "yesterday"])
    assert ClickLog([1, 2], ["q"] * 2, ["d"] * 2, [1, 1], [0, 0], time=["2026-01-01", None]).time is None


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def of_query(name, query, document, ordinal=None, **more):
    position = {} if ordinal is None else {"position": {"ordinal": ordinal}}
    about = {"action_name": name, "query_id": query, "user_query": "cat"} | more
    return about | {"event_attributes": {"object": {"object_id": document}, **position}}


@pytest.mark.parametrize("first", [0, 1])
def test_queries_without_hits_come_from_their_events(first, tmp_path):
    """Whichever half of the queries has hits, the log is the same, and what has neither is counted."""
    lists = {f"q{k}": ["a", "b", "c"][k % 3 :] + ["d", "e"] for k in range(12)}
    events = [
        of_query("impression", name, document, place)
        for name, shown in lists.items()
        for place, document in enumerate(shown, first)
    ]
    events += [of_query("click", name, shown[1]) for name, shown in lists.items()]
    events += [of_query("impression", None, "a", 1), of_query("scroll", None, "a")]
    wanted = None
    for some in ((), ("q0", "q3", "q7"), tuple(lists)):
        queries = [
            {"query_id": name, "user_query": "cat"} | ({"query_response_hit_ids": shown} if name in some else {})
            for name, shown in lists.items()
        ]
        queries.append({"query_id": "empty", "user_query": "dog", "query_response_hit_ids": []})
        log = read_clicks(
            lines(tmp_path / "events.jsonl", events), lines(tmp_path / "queries.jsonl", queries),
            format="ubi", first_position=first,
        )  # fmt: skip
        assert sum(log.skipped.values()) == 3
        found = sorted(zip(log.document_ids[log.document], log.position.tolist(), log.clicked.tolist()))
        wanted = wanted or found
        assert found == wanted
        assert log.n_impressions == 12
    told = "\n".join(examine_log(log))
    assert "queries without hits and without shown documents): 1" in told
    assert "events without query_id): 1" in told


def test_what_is_left_out_names_its_remedy(tmp_path):
    """Positions from 0: every list is left out, or those that a start at 0 makes wrong, with the option to use."""
    one = {"impression": [1, 1, 2, 2], "query": ["x"] * 4, "document": ["a", "b", "a", "b"], "clicked": [0, 1, 0, 0]}
    log = ClickLog(**one, position=[1, 2, 0, 1], bad="skip")
    assert log.skipped == {"position": 1}
    assert any("first_position=0" in finding for finding in examine_log(log))
    with refused(InvalidInputError, code="no-impression"):
        ClickLog(**one, position=[0, 1, 0, 1], bad="skip")


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
def test_times_that_cannot_be_are_counted(unit):
    now, later = 1_700_000_000 * unit, 7_000_000_000 * unit
    times = [now, now, -5, -5, later, later, *[now] * 6]
    log = ClickLog(np.arange(12) // 2, ["x"] * 12, ["a", "b"] * 6, [1, 2] * 6, [0, 1] * 6, time=times)
    told = examine_log(log)
    assert any("times below 0: 2 rows" in finding for finding in told)
    assert any("times in the future: 2 rows" in finding for finding in told)
    texts = ["2026-01-01", "2026-01-01", "9999-12-31", "9999-12-31", *["2026-01-01"] * 8]
    log = ClickLog(np.arange(12) // 2, ["x"] * 12, ["a", "b"] * 6, [1, 2] * 6, [0, 1] * 6, time=texts)
    assert any("times in the future: 2 rows" in finding for finding in examine_log(log))
    counter = ClickLog([1, 1, 2, 2], ["x"] * 4, ["a", "b"] * 2, [1, 2] * 2, [0, 1] * 2, time=[0, 0, 1, 1])
    assert not any("times" in finding for finding in examine_log(counter))


@pytest.mark.parametrize("form", ["array", "indented", "response", "bulk"])
def test_ubi_as_one_json_value_and_as_a_bulk_request(tmp_path, form):
    rows, path = [event("impression", "a", 1), event("impression", "b", 2), event("click", "b", 2)], tmp_path / "e.json"
    lines = "".join(f'{{"index": {{"_index": "ubi_events"}}}}\n{json.dumps(row)}\n' for row in rows)
    response = {"took": 1, "hits": {"hits": [{"_id": str(k), "_source": row} for k, row in enumerate(rows)]}}
    texts = {"array": json.dumps(rows), "indented": json.dumps(rows, indent=1),
             "response": json.dumps(response, indent=1), "bulk": lines}  # fmt: skip
    path.write_text(texts[form])
    assert told(read_clicks(path, format="ubi")) == [(0, "cat", "a", 1, False), (0, "cat", "b", 2, True)]
    path.write_text(texts[form].replace('"query_id"', '"query_id', 1))
    with pytest.raises(DataFileError, match="line"):
        read_clicks(path, format="ubi")


@pytest.mark.parametrize("times", [[1.0, np.nan, 3.0, 4.0], ["2026-01-01", "", "2026-01-02", None]])
def test_rows_without_a_time_are_counted_where_others_have_one(times):
    log = ClickLog([1, 1, 2, 2], ["q"] * 4, list("abab"), [1, 2, 1, 2], [0, 1, 0, 1], time=times)
    absent = sum(value in ("", None) or value != value for value in times)
    assert log.time is None
    assert log.skipped == {NO_TIME: absent}
    assert any(f"{NO_TIME}): {absent}" in str(text) for text in examine_log(log))
    assert ClickLog([1, 1], ["q"] * 2, ["a", "b"], [1, 2], [0, 1], time=[None, None]).skipped == {}


def test_ubi_is_recognised_and_every_action_tells_what_is_left_out(tmp_path, capsys):
    shown = [of_query("impression", f"q{k}", name, place) for k in range(4) for place, name in enumerate("ab", 1)]
    clicked = [of_query("click", f"q{k}", "ab"[k % 2]) for k in range(4)]
    path = lines(tmp_path / "events.ndjson", [*shown, *clicked, of_query("scroll", "q0", "a")])
    log = read_clicks(path)
    assert (log.n_impressions, log.skipped) == (4, {OTHER: 1})
    write_run({"cat": {"a": 2.0, "b": 1.0}}, tmp_path / "new.run")
    assert main(["clicks", "value", str(path), "--runs", str(tmp_path / "new.run"), "--cutoff", "1"]) == 0
    error = capsys.readouterr().err
    assert "unknown action names): 1" in error
    assert "--click-action" in error
