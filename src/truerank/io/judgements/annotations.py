"""Exports of annotation tools: Label Studio, Argilla and Prodigy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truerank.core.errors import DataFileError
from truerank.data.grouping import id_text
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format
from truerank.io.judgements.nested import only_value
from truerank.io.judgements.ratings import Row
from truerank.io.judgements.roles import GRADE, few, plain, roles_of

_KEYS = ({"annotations", "data"}, {"fields", "responses"}, {"_task_hash", "answer"})
_ACCEPTED = {"accept": 1, "reject": 0}  # Prodigy's answers to a task without options


def _matches(content: Content) -> bool:
    return content.kind == "json" and any(keys <= content.first().keys() for keys in _KEYS)


def _rows(content: Content) -> Iterator[Row]:
    """Yield a row for each answer; the data of the task have the query and the document."""
    for line, value in content.values:
        for task in value if isinstance(value, list) else [value]:
            if not isinstance(task, dict):
                raise DataFileError(f"expected a task as a JSON object, got {task!r:.60}", content.name, line)
            data = {name: one for name, one in task.items() if not isinstance(one, dict | list) and plain(name) != "id"}
            for part in ("data", "fields", "metadata", "meta"):
                data |= task[part] if isinstance(task.get(part), dict) else {}
            data = {name: one for name, one in data.items() if not isinstance(one, dict | list) and one is not None}
            roles = roles_of(data, like=True)
            query = data.get(roles.get("query", roles.get("text", "")))
            if any(one.get("type") in ("pairwise", "ranker") for own in _listed(task.get("annotations"))
                   for one in _listed(own.get("result"))):  # fmt: skip
                what = "the tasks compare documents, and contain no grades. Ask for a grade of each document"
                raise DataFileError(what, content.name, line)
            if query is None or "document" not in roles:
                lost = "query" if query is None else "document id"
                what = f"a task has no {lost}; its data are {few(data)}. Add the {lost} to the data of each task"
                raise DataFileError(what, content.name, line, code="lacks-id", value=lost)
            text = str(data[roles["text"]]) if "text" in roles else None
            for judge, grade in _answers(task, content.name, line):
                yield Row(id_text(query), id_text(data[roles["document"]]), grade, judge, text, line)


def _answers(task: dict[str, Any], name: str, line: int | None) -> Iterator[tuple[str | None, Any]]:
    """Yield the annotators and their grades; None marks a task that could not be judged."""
    found: list[tuple[str, Any, Any]] = []  # question, person, answer
    for own in _listed(task.get("annotations")):
        if not own.get("was_cancelled"):
            results = [(str(one.get("from_name")), one.get("value")) for one in _listed(own.get("result"))]
            found += [(question, own.get("completed_by"), answer) for question, answer in results]
    responses = task.get("responses")
    if isinstance(responses, dict):  # by question
        found += [(question, own.get("user_id"), own.get("value")) for question in responses
                  for own in _listed(responses[question])]  # fmt: skip
    for own in _listed(responses):  # by person
        values = own.get("values") or {}
        found += [(question, own.get("user_id"), values[question]) for question in values]
    if "answer" in task:  # Prodigy
        person = task.get("_annotator_id", task.get("_session_id"))
        answer = (
            task.get("accept") if task["answer"] == "accept" and "accept" in task else _ACCEPTED.get(task["answer"])
        )
        found.append(("accept", person, answer))
    questions = dict.fromkeys(question for question, _, _ in found)
    asked = [question for question in questions if plain(question) in GRADE] or list(questions)
    if len(asked) > 1:
        what = f"a task has several questions that may be the grade: {few(asked)}. Export one of them"
        raise DataFileError(what, name, line, code="several-questions")
    for question, person, answer in found:
        if question in asked:
            named = person.get("email", person.get("id")) if isinstance(person, dict) else person
            yield (None if named is None else id_text(named)), only_value(answer)


def _listed(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


ANNOTATIONS = Format("annotations", "an export of Label Studio, Argilla or Prodigy", _matches, _rows)
