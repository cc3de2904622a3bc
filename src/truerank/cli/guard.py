"""Run a command: print errors as one line, and handle interrupts and closed standard streams."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truerank.cli.parser import OptionWording

INTERRUPTED, INTERNAL_ERROR = 130, 70
GRACE = 0.5
"""Seconds for a command to end by itself after an interrupt, before the process ends."""


def as_program(command: Callable[[], int]) -> int:
    """Run the command line in a process that ends within a second of an interrupt."""
    _open_closed_descriptors()
    sys.unraisablehook = _unraisable
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files that are not UTF-8
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _watch_interrupts()
    try:
        code = command()
        _ignore_interrupts()
    except KeyboardInterrupt:  # outside of a command: while modules were imported, or when it had ended
        code = INTERRUPTED
    except SystemExit as end:  # argparse
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    _ignore_interrupts()
    if (files := sys.modules.get("truerank.core.files")) is not None:
        files.remove_unfinished()  # of a writer that was interrupted before its `with` was entered
    return _flushed(code)


def _ignore_interrupts() -> None:
    """Ignore further interrupts, because the process is about to exit."""
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _unraisable(found: Any) -> None:
    """Print errors that Python cannot raise, such as in a destructor, except interrupts (see `Interruptible`)."""
    if not issubclass(found.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(found)


def guarded(
    command: str, run: Callable[[], int | None], argv: list[str], wording: OptionWording, failure: int = 1
) -> int:
    """Run a command: an expected failure prints one line on stderr, any other writes a report; a closed pipe ends
    quietly.

    With `--json` a failure prints one object too, `{"error": message, "exit_code": code}` after the fields and the
    `details` of the error. Messages name the options of the command. `failure` is the exit code of expected failures.
    """
    from truerank.cli.parser import UsageError
    from truerank.core.errors import TruerankError
    from truerank.core.interrupts import Interruptible
    from truerank.core.printing import note, print_json
    from truerank.core.results import headed
    from truerank.core.rounds import shown_progress

    name = f"truerank {command}"

    def failed(text: str, exit_code: int, error: Exception, advice: str = "") -> int:
        note(f"{name}: {text}{advice}")
        if "--json" in wording.options and "--json" in argv:
            fields = error.fields() if isinstance(error, TruerankError) else {}
            found = getattr(error, "details", {}) | fields | {"error": text, "exit_code": exit_code}
            with suppress(OSError, AttributeError, ValueError):  # nobody reads standard output
                print_json(headed("error", found))
                sys.stdout.flush()
        return exit_code

    try:
        with _warnings_to_stderr(wording), shown_progress(), Interruptible():
            code = run()
            if sys.stdout is not None:
                sys.stdout.flush()
        return int(code or 0)
    except BrokenPipeError:
        # The reader went away (`truerank … | head`).
        _silence_stdout()
        return 0
    except KeyboardInterrupt:
        note("truerank: interrupted")
        return INTERRUPTED
    except UsageError as error:
        return failed(error.worded(wording), 2, error, f"\ntry: {name} --help")
    except Exception as error:
        if os.environ.get("TRUERANK_DEBUG"):
            raise
        if isinstance(error, OSError) and error.filename is None and not isinstance(error, TruerankError):
            _silence_stdout()  # most likely what could not be written: do not fail again at the end
        if isinstance(error, TruerankError | OSError | MemoryError) or _is_about_input(error):
            return failed(message(error, wording), failure, error)
        return failed(_reported(error, argv), INTERNAL_ERROR, error)


@contextmanager
def _warnings_to_stderr(wording: OptionWording) -> Iterator[None]:
    """Print each warning as one line on stderr, without the source location."""
    from truerank.core.printing import note

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        text = next((one for one in (message, *message.args) if hasattr(one, "worded")), None)
        note(f"truerank: warning: {message if text is None else text.worded(wording)}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show
        yield


def message(error: BaseException, wording: OptionWording) -> str:
    """Return an error as one readable line, or as a list of problems; `--sparse` is advised if the command has it."""
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, OSError) and error.errno == errno.EBADF:
        text = "standard output is closed, and the command prints to it. Open it, or name a file with -o"
    elif isinstance(error, MemoryError):
        text = f"not enough memory: {error or 'an array did not fit'}"
        if "--sparse" in wording.options:
            text += (
                ". Wide data may fit as a sparse matrix (--sparse), and a damaged feature index may ask for columns "
                "that do not exist (--n-features N sets their number)"
            )
    else:
        text = error.worded(wording) if hasattr(error, "worded") else str(error) or type(error).__name__
    return text if getattr(error, "code", None) == "columns" else " ".join(text.split("\n"))


def _is_about_input(error: BaseException) -> bool:
    """Return whether an error comes from scikit-learn's check of arguments (ValueError, TypeError)."""
    if not isinstance(error, ValueError | TypeError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("sklearn.utils.")


def _reported(error: BaseException, argv: list[str]) -> str:
    """Write the traceback to a file; return a line with the error and the name of the file."""
    import platform
    import tempfile
    import traceback

    from truerank import __version__
    from truerank.io.engine import masked_address, without_credentials

    text = without_credentials(" ".join(f"{type(error).__name__}: {error}".split()))[:300]
    argv = [masked_address(word) if "://" in word or "@" in word else word for word in argv]
    lines = [
        f"truerank {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
        f"arguments: {argv!r}\n\n",
        *traceback.format_exception(error),
    ]
    try:
        descriptor, path = tempfile.mkstemp(prefix="truerank-report-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(without_credentials("".join(lines)))
    except OSError as failed:
        return f"an error inside truerank: {text} (no report could be written: {failed})"
    return f"an error inside truerank: {text}; the full report is {path}, please send it along with what you ran"


def _open_closed_descriptors() -> None:
    """Open closed standard descriptors as the null device, so that no other file gets their numbers.

    Printing to a closed standard output fails.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):  # gets the lowest free number, which is this one
                os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - is open until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for libraries that write to it


def _silence_stdout() -> None:
    """Redirect stdout to the null device, so that the final flush is silent."""
    with suppress(OSError, ValueError, AttributeError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def _flushed(code: int) -> int:
    """Flush standard output; return the exit code, which reports a new failure of the flush."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _silence_stdout()
        if not isinstance(error, BrokenPipeError) and code == 0:
            from truerank.core.printing import note

            note(f"truerank: standard output: {error.strerror}")
            return 1
    return code


def _watch_interrupts() -> None:
    """Start a thread that ends the process if the command does not end after an interrupt.

    Python runs signal handlers between two bytecodes of the main thread, which may be minutes inside compiled code.
    The write to this pipe happens in the signal itself.
    """
    read_end, write_end = os.pipe()
    if hasattr(os, "set_blocking"):  # not on Windows before Python 3.12
        os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def watch() -> None:
        while True:
            numbers = os.read(read_end, 64)
            if not numbers:
                return
            if signal.SIGINT in numbers:
                break
        time.sleep(GRACE)
        from truerank.core.files import RENAMING, remove_unfinished

        with RENAMING:
            remove_unfinished()
            with suppress(OSError):
                os.write(2, b"truerank: interrupted\n")
            os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True, name="interrupts").start()
