"""`truerank trec-eval`: NIST's trec_eval 10.0, option by option and byte by byte."""

from __future__ import annotations

import gc
import getopt
import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from truerank.core.layers import is_large

if TYPE_CHECKING:
    from truerank.compat.trec_eval import Options, Parser

COMPILED_FROM = 32 << 20  # bytes of runs
OPTIONS = [  # letter, long name, what follows, help
    ("q", "query_eval_wanted", "", "print each topic, then the means"),
    ("m", "measure", "NAME[.PARAMETERS]", "measure or set of measures; may be repeated (default: official)"),
    ("c", "complete_rel_info_wanted", "", "topics that the run lacks count 0"),
    ("l", "level_for_rel", "N", "lowest relevant grade (default: 1)"),
    ("n", "nosummary", "", "do not print the means"),
    ("J", "Judged_docs_only", "", "remove documents without a judgement from the run"),
    ("N", "Number_docs_in_coll", "N", "documents of the collection, for utility (default: 0)"),
    ("M", "Max_retrieved_per_topic", "N", "read at most N documents of a topic"),
    ("R", "Rel_info_format", "FORMAT", "qrels, qrels_jg, prefs, qrels_prefs (default: qrels)"),
    ("T", "Results_format", "FORMAT", "trec_results"),
    ("Z", "Zscore", "FILE", "print standard deviations from the means in FILE (topic, measure, mean, deviation)"),
    ("D", "Debug_level", "N.TOPIC", "evaluate only TOPIC; traces are not printed"),
    ("v", "version", "", "print the version of trec_eval that is reproduced"),
    ("o", "Output_old_results_format", "", "no effect, as in trec_eval"),
    ("h", "help", "", "print this text, and the formulas of the measures that -m names"),
]
USAGE = """usage: truerank trec-eval [-q] [-m MEASURE[.PARAMETERS]]... [OPTIONS] QRELS RUN [RUN...]

Print the measures of NIST's trec_eval 10.0, byte by byte. Unlike trec_eval, truerank accepts several runs, and
evaluates one after the other. `-` reads the run from standard input.

""" + "".join(f"  -{letter}, {f'--{name} {value}':<36}{text}\n" for letter, name, value, text in OPTIONS)
SHORT = "".join(letter + ":" * bool(value) for letter, _, value, _ in OPTIONS)
LONG = {name: letter for letter, name, _, _ in OPTIONS}


def configure(parser: Any) -> None:
    """Declare the options, for help and completion; `run` reads the words itself, as getopt does."""
    for letter, name, value, text in OPTIONS[:-1]:
        if value:
            parser.add_argument(f"-{letter}", f"--{name}", metavar=value, help=text)
        else:
            parser.add_argument(f"-{letter}", f"--{name}", action="store_true", help=text)
    parser.add_argument("qrels", metavar="QRELS", help="judgements")
    parser.add_argument("runs", metavar="RUN", nargs="+", help="runs; - is standard input")


def run(words: list[str]) -> int:
    """Run the command with the words after its name; return trec_eval's exit code."""
    from truerank.compat.trec_eval import (
        FORMATS,
        Options,
        TrecEvalError,
        TrecEvaluation,
        read_judgements,
        read_results,
        read_zscores,
    )

    gc.disable()  # nothing here is cyclic, and collections need a tenth of the time
    try:
        given, files = getopt.gnu_getopt(words, SHORT, [name + "=" * bool(value) for _, name, value, _ in OPTIONS])
        letters = [(LONG[name[2:]] if name.startswith("--") else name[1:], value) for name, value in given]
        options = Options()
        for letter, value in letters:
            if letter == "v":
                print("trec_eval version 10.0", file=sys.stderr)
                return 0
            _set(options, letter, value)
        chosen = dict(letters)
        if "h" in chosen:
            return _print_help(options.measures)
        if len(files) < 2:
            print(USAGE, end="", file=sys.stderr)
            return 1
        if options.format not in FORMATS:
            raise TrecEvalError(f"trec_eval: Illegal rel_format '{options.format}'; known: {', '.join(FORMATS)}", 2)
        judgements = read_judgements(_bytes_of(files[0]), options.format)
        if (known := chosen.get("T", "trec_results")) != "trec_results":
            raise TrecEvalError(f"trec_eval: Illegal retrieval results format '{known}'", 2)
        first = read_results(_bytes_of(files[1]))
        if "Z" in chosen:
            options.zscores = read_zscores(_bytes_of(chosen["Z"]))
        evaluation, parser = TrecEvaluation(judgements, options), _parser(files[2:])
        for file in files[1:]:
            results = first if file is files[1] else read_results(_bytes_of(file), parser)
            for text in evaluation.lines(results):
                sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    except getopt.GetoptError as error:
        _say(f"trec_eval: {error}\n{USAGE}")
        return 1
    except TrecEvalError as error:
        sys.stdout.flush()
        _say(f"{error}\n")
        return error.code
    finally:
        gc.enable()
    return 0


def _parser(files: list[str]) -> Parser | None:
    """Return the compiled parser for runs so large that parsing them repays the time to load it."""
    sizes = [os.path.getsize(file) for file in files if os.path.isfile(file)]
    if not is_large(sum(sizes), COMPILED_FROM, COMPILED_FROM):
        return None
    from truerank.io.trec_kernel import parse_block

    def parse(text: bytes) -> tuple[list[tuple[int, bytes]], list[bytes], list[float]] | None:
        found = parse_block(text, 6, 4)
        if found is None:
            return None
        topics, (utf8, ends), scores, _, _ = found
        joined = utf8.tobytes()
        documents = [joined[start:stop] for start, stop in pairwise(ends.tolist())]
        return topics, documents, scores.tolist()

    return parse


def _set(options: Options, letter: str, value: str) -> None:
    """Apply an option. Each `-m` adds a measure; of a repeated other option, the last value counts."""
    from truerank.compat.trec_eval import atol, named_measures

    match letter:
        case "q":
            options.by_query = True
        case "c":
            options.complete = True
        case "n":
            options.summary = False
        case "J":
            options.judged_only = True
        case "m":
            named_measures(value)
            options.measures.append(value)
        case "l":
            options.level = atol(os.fsencode(value))
        case "N":
            options.n_collection = atol(os.fsencode(value))
        case "M":
            options.most = atol(os.fsencode(value))
        case "D":
            _, dot, topic = value.partition(".")
            options.only = os.fsencode(topic) if dot else options.only
        case "R":
            options.format = value


def _say(text: str) -> None:
    """Print lines on standard error, with control characters escaped."""
    from truerank.core.printing import shown

    print("\n".join(map(shown, text.split("\n"))), end="", file=sys.stderr)


def _bytes_of(path: str) -> bytes:
    """Return the content of a file, which may be compressed; `-` is standard input."""
    if path.startswith("-"):
        return sys.stdin.buffer.read()
    if path.endswith((".gz", ".xz", ".zst", ".bz2")):
        from truerank.io.streams import Source

        with Source(path) as source:
            return b"".join(source.line_blocks())
    with open(path, "rb") as file:
        return file.read()


def _print_help(measures: list[str]) -> int:
    from truerank.compat.trec_eval import MEASURES, NICKNAMES, wanted_measures

    print(USAGE)
    if not measures:
        print("measures: " + ", ".join(MEASURES), "sets of measures: " + ", ".join(NICKNAMES), sep="\n")
        return 0
    for wanted in wanted_measures(measures):
        text = wanted.measure.formula or wanted.measure.compute.__doc__ or ""
        print(f"{wanted.root}: {' '.join(text.split())}")
    return 0
