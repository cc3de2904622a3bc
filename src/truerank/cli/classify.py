"""`truerank text classify`: learn to classify texts or rows, or classify them with calibrated probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import truerank
from truerank.calibration import CALIBRATORS, SOFTMAX_METHODS, SYNONYMS
from truerank.cli import common, options
from truerank.cli.parser import Output, OutputFile, argument, option, within
from truerank.core.files import one_step

if TYPE_CHECKING:
    import numpy as np

METHODS = list(dict.fromkeys([*CALIBRATORS, *SYNONYMS, *SOFTMAX_METHODS]))
CLASSIFIERS = ("naive-bayes", "linear-svm", "voted-perceptron")
LABELS = ("labels", "label")
LEARNING = ("classifier", "method", "n_words", "min_documents", "cv", "random_state")  # parameters


class Examples(NamedTuple):
    """The ids, texts or numbers, labels (None if there are none) and column names of the documents in a file."""

    ids: list[str]
    rows: Any
    labels: list[list[str]] | None
    columns: list[str] | None = None


class Arguments(options.Bad, options.Json):
    data: str | None = argument(
        'documents to classify: JSON lines {"id", "text", "labels"}, a CSV or Parquet table with such columns, or a '
        "folder with a folder of text files for each label. All text fields except labels are read. Without text "
        "fields, the numeric fields are the features. Documents without ids get their number, from 1",
        "[DATA]",
    )
    model: str = option(
        "the model, as JSON: written with --train, else read",
        "FILE",
        writes=lambda args: OutputFile if args.train else str,
    )
    train: str | None = option("labelled documents to learn from, in the same forms", "FILE")
    learn = within("learning (with --train)", to="train", why="applies only to learning: give --train FILE")
    classifier: str | None = learn("learning algorithm (default: linear-svm)", choices=CLASSIFIERS)
    method: str | None = learn(
        f"calibrator: {', '.join(METHODS)} (default: pool, their average weighted by cross-validated log loss)",
        "NAME",
        choices=METHODS,
    )
    n_words: int | None = learn(
        "keep the N words with the highest mutual information (default: all)", "N", names="--words"
    )
    min_documents: int | None = learn("minimum number of documents that contain a word (default: 3)", "N")
    cv: int | None = learn("folds of the calibration scores (default: 5)", "K")
    random_state: int | None = learn("random seed (default: 0)", "N", names="--seed")
    label_field: str | None = option("field of the labels (default: labels, else label)", "NAME")
    text_field: list[str] | None = option("text field to use; may be repeated (default: all)", "NAME", action="append")
    separator: str | None = option("separator of several labels in a cell of a table (default: ;)", "C")
    decided = within("classifying (with DATA)", to="data", why="applies only to classifying: give DATA")
    cost_fp: float | None = decided("cost of a wrong label (default: 1)", "C")
    cost_fn: float | None = decided("cost of a missing label (default: 1)", "C")
    output: Output | None = decided("output file of JSON lines (default: stdout)", "FILE")


def run(args: Arguments) -> int:
    """Train, classify, or both; print `{"id", "labels", "probabilities"}` by document, and a summary on stderr."""
    if args.train is None and args.data is None:
        raise common.UsageError("no data are named. Give DATA to classify, --train FILE to learn from, or both")
    if args.separator == "":
        raise common.UsageError("--separator is empty. Give one or more characters")
    if not any(map(common.table_kind, (args.train, args.data))):
        common.refuse_idle(args, ("separator",), "applies only to tables, and no file is a table")
    report: dict[str, Any] = {"model": args.model}
    with one_step():
        if args.train is not None:
            model = _train(args, args.train, report)
        else:
            advice = "not a classifier of documents. Write one with --train FILE"
            model = common.load_as(truerank.TextClassifier, args.model, advice)
        if args.data is not None:
            _classify(args, args.data, model, report)
    if args.json:
        common.print_report(args, report)
    return 0


def _train(args: Arguments, train: str, report: dict[str, Any]) -> Any:
    examples = read_examples(train, args)
    if examples.labels is None:
        raise common.InvalidInputError(
            f"{train}: no document has a label. Name the field labels or label, or add --label-field NAME"
        )
    model = truerank.TextClassifier(**common.given(args, *LEARNING))
    model.fit(examples.rows, examples.labels, feature_names=examples.columns)
    truerank.save_model(model, args.model)
    words = model.classifier_.estimators_[0]
    n_words = len(words.named_steps["words"].vocabulary_) if words is not None and model.from_text_ else None
    report |= {
        "classifier": model.classifier, "method": model.method, "documents": len(examples.ids), "words": n_words,
        "multi_label": model.multi_label_, "labels": model.classes_.tolist(),
    }  # fmt: skip
    kind = "any number of labels for each document" if model.multi_label_ else "one label for each document"
    common.note(
        f"trained {model.classifier}, calibrated by {model.method}, on {len(examples.ids)} documents with "
        f"{len(model.classes_)} labels ({kind}), and wrote {args.model}"
    )
    return model


def _classify(args: Arguments, data: str, model: Any, report: dict[str, Any]) -> None:
    examples = read_examples(data, args, getattr(model, "feature_names_in_", None))
    p = model.predict_proba(examples.rows)
    decided = model.decide(examples.rows, **common.given(args, "cost_fp", "cost_fn"))
    decided = decided if model.multi_label_ else [[label] for label in decided.tolist()]
    names = [str(name) for name in model.classes_]
    lines = [
        {"id": name, "labels": labels, "probabilities": dict(zip(names, row))}
        for name, labels, row in zip(examples.ids, decided, p.tolist())
    ]
    if args.json and args.output in (None, "-"):
        report["predictions"] = lines
    else:
        with common.output(args.output) as stream:
            stream.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    report["classified"] = len(lines)
    if examples.labels is not None:
        report["test"] = figures = _figures(model, examples.labels, decided, model.predict_log_proba(examples.rows), p)
        common.note(
            ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in figures.items() if value is not None)
        )
        if unseen := figures["unseen_labels"]:
            what = "label" if unseen == 1 else "labels"
            common.note(
                f"{unseen} {what} of these documents did not occur in training. Such labels count as errors, and have "
                "probability 0 in the squared error. The log loss is computed without them"
            )
        if bare := figures.get("without_label"):
            common.note(f"{common.counted(int(bare), 'document')} without a label: left out of these figures")


def _figures(
    model: Any, labels: list[list[str]], decided: list[list[str]], log_p: np.ndarray, p: np.ndarray
) -> dict[str, Any]:
    """Return losses in nats by labelled document, or by decision if documents have several labels.

    A label that the model does not know counts as a missed decision, because its log loss would be infinite.
    """
    import numpy as np

    names = [str(name) for name in model.classes_]
    true = np.array([[name in some for name in names] for some in labels])
    given = np.array([[name in some for name in names] for some in decided])
    unseen = np.array([len(set(some) - set(names)) for some in labels])
    missed = int(unseen.sum())
    if model.multi_label_:
        log_rest = np.log1p(-np.minimum(p, 1 - 1e-16))
        both, decisions = int((true & given).sum()), true.size + missed
        return {
            "decisions": decisions,
            "unseen_labels": missed,
            "log_loss": float(-np.where(true, log_p, log_rest).mean()),
            "squared_error": float(((p - true) ** 2).sum() + missed) / decisions,
            "error": float((true != given).sum() + missed) / decisions,
            "f1": 2 * both / max(int(true.sum() + given.sum()) + missed, 1),
        }
    there = true.any(axis=1) | (unseen > 0)
    if not there.any():
        raise common.InvalidInputError(
            f"none of the {len(true)} documents has a label, but at least one is required. Add the labels of a document"
        )
    return {
        "documents": int(there.sum()),
        "without_label": int((~there).sum()),
        "unseen_labels": missed,
        "log_loss": float(-log_p[true].mean()) if true.any() else None,
        "squared_error": float((((p - true) ** 2).sum(axis=1) + unseen)[there].mean()),
        "error": float(((true != given).any(axis=1) | (unseen > 0))[there].mean()),
    }


def read_examples(path: str, args: Arguments, columns: Iterable[str] | None = None) -> Examples:
    """Return ids, texts or numbers (of `columns`, if given) and labels of the documents in a file or folder."""
    from truerank.io.documents import BETWEEN

    if path != "-" and Path(path).is_dir():
        records = list(_of_folder(Path(path)))
        return Examples([r[0] for r in records], [r[1] for r in records], [[r[2]] for r in records])
    separator = (args.separator or ";") if common.table_kind(path) else BETWEEN
    fields = LABELS if args.label_field is None else (args.label_field,)
    documents = list(truerank.read_documents(path, bad=args.bad, texts=fields, numbered=True))
    there = {name for document in documents for name in document.text}
    field = next((name for name in fields if name in there), None)
    wrong = [name for name in args.text_field or () if name not in there - {field}]
    if wrong or (args.label_field is not None and field is None):
        known = f"The text fields are: {', '.join(sorted(there)[:12]) or 'none'}"
        raise common.InvalidInputError(f"{path}: no document has the field {(wrong or fields)[0]!r}. {known}")
    labels = None
    if field is not None:
        cells = [document.text.get(field, "").replace(BETWEEN, separator) for document in documents]
        labels = [_labels(cell, separator) for cell in cells]
    ids = [document.id for document in documents]
    used = there - {field} if not args.text_field else {*args.text_field}
    texts = [[text for name, text in document.text.items() if name in used] for document in documents]
    if any(texts):
        return Examples(ids, ["\n".join(fields) for fields in texts], labels)
    names = list(dict.fromkeys(name for document in documents for name in document.numbers))
    names = names if columns is None else list(map(str, columns))
    return Examples(ids, _numbers(path, documents, names), labels, names)


def _labels(text: str, separator: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(separator) if part.strip()))


def _numbers(path: str, documents: list[Any], names: list[str]) -> np.ndarray:
    import numpy as np

    if not names:
        raise common.InvalidInputError(f"{path}: document {documents[0].id!r} has no text and no numbers. Remove it")
    for document in documents:
        missing = [name for name in names if name not in document.numbers]
        if missing:
            raise common.InvalidInputError(
                f"{path}: document {document.id!r} has no number in the field {missing[0]!r}. Fill it in, or remove "
                "the document"
            )
    return np.array([[document.numbers[name] for name in names] for document in documents])


def _of_folder(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (id, text, label) of each file in the subfolders of a folder, whose names are the labels."""
    n = 0
    for place in sorted(part for part in folder.iterdir() if part.is_dir() and not part.name.startswith(".")):
        for file in sorted(part for part in place.rglob("*") if part.is_file() and not part.name.startswith(".")):
            raw = file.read_bytes()
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                text = raw.decode("latin-1")
            n += 1
            yield str(file.relative_to(folder)), text, place.name
    if n == 0:
        raise common.InvalidInputError(f"{folder}: found no text files. Expected a folder of text files for each label")
