"""Ensure that an interrupt (Ctrl-C) is neither lost nor turned into another exception.

Python raises KeyboardInterrupt between two bytecodes. A call of compiled code runs bytecodes that cannot raise
exceptions: the interrupt becomes a SystemError, or is printed and lost.
"""

from __future__ import annotations

import signal
import threading
from _thread import start_new_thread
from types import FrameType, TracebackType
from typing import Any

REMIND_AFTER = 0.3  # seconds after which a block that has not ended is interrupted again


class Interruptible:
    """A block that an interrupt ends with the exception of the interrupt handler, also inside compiled code.

    If another exception follows an interrupt (a SystemError of compiled code), the interrupt replaces it. If a block
    loses the interrupt, it is raised again after a moment, or at the end of the block. Outside the main thread, and if
    interrupts are ignored, the block has no effect. Blocks may be nested.

    Examples
    --------
    >>> with Interruptible():
    ...     total = sum(range(10))
    >>> total
    45
    """

    def __enter__(self) -> Interruptible:
        self._raised: BaseException | None = None
        self._done = threading.Event()
        self._reminding = threading.Lock()
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._before = handler
                signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before(number, frame)
        except BaseException as error:
            first, self._raised = self._raised is None, error
            if first and not self._done.is_set():
                # Thread.start() waits for its thread, and the next interrupt would strike inside of this handler.
                start_new_thread(self._remind, ())
            if not _is_within(frame):  # such an exception would leave this handler installed
                raise

    def _remind(self) -> None:
        while not self._done.wait(REMIND_AFTER):
            with self._reminding:  # a reminder after the block would interrupt what comes next
                if self._done.is_set():
                    return
                if hasattr(signal, "pthread_kill"):  # wakes the main thread where it waits
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                else:
                    signal.raise_signal(signal.SIGINT)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._reminding:
            self._done.set()
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        if self._raised is not None and type(error) is not type(self._raised):
            raise self._raised from None


def _is_within(frame: FrameType | None) -> bool:
    """Return whether the interrupted code is at the start or end of a block, or was called from there."""
    while frame is not None:
        if frame.f_code in (Interruptible.__enter__.__code__, Interruptible.__exit__.__code__):
            return True
        frame = frame.f_back
    return False
