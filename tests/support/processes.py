"""Programs in processes of their own, without the seconds that their imports take.

The first call starts a process that imports truerank with its libraries; each program runs in a fork of that. It has
its own standard streams, folder, environment and arguments, and ends as a Python program does. Tests of the start, of
imports, of variables that Python or a library reads at its start, and of limits on memory start a real process.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = "import runpy; runpy.run_module('truerank', run_name='__main__', alter_sys=True)"
SERVER = """
import importlib, json, os, pkgutil, signal, socket, sys, warnings
signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the tests end, and then this process does
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import truerank
    for name in ("numba", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "sklearn.isotonic"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(truerank.__path__, "truerank."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    truerank.RidgeRanker().fit(truerank.load_sample().take_queries(range(12)))  # loads compiled code
line = socket.socket(fileno=int(sys.argv[1]))
while True:
    asked, streams, *_ = socket.recv_fds(line, 1 << 20, 3)
    if not asked:
        os._exit(0)
    child = os.fork()
    if child == 0:
        break
    for stream in streams:
        os.close(stream)
    line.sendall(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
line.close()
for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
coded = sys.stdout.encoding
sys.stdin = open(0, encoding=coded, closefd=False)
sys.stdout = open(1, "w", encoding=coded, closefd=False)
sys.stderr = open(2, "w", 1, coded, "backslashreplace", closefd=False)
signal.signal(signal.SIGINT, signal.default_int_handler)
program, sys.argv[1:], folder, environment = json.loads(asked)
os.environ.clear()
os.environ.update(environment)
os.chdir(os.fsencode(folder))
exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
"""

_server: socket.socket | None = None


def _started() -> socket.socket:
    global _server
    if _server is None:
        _server, theirs = socket.socketpair()
        number = theirs.fileno()
        words = [sys.executable, "-c", SERVER, str(number)]
        process = subprocess.Popen(words, pass_fds=[number], stdin=subprocess.DEVNULL)
        theirs.close()

        def end(ours: socket.socket = _server) -> None:
            ours.close()
            process.wait()

        atexit.register(end)
    return _server


def run(
    program: str, *words: str, cwd: str | bytes | Path = ".", stdout: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run Python code with these arguments; its exit code (negative: a signal) and what it printed.

    `stdout` is a descriptor in place of what is returned.
    """
    environment = dict(os.environ)
    folder = os.path.abspath(os.fsdecode(cwd))
    if sys.platform != "linux":  # there is no fork, or the libraries of the system do not outlive it
        pipes = {"stdout": subprocess.PIPE if stdout is None else stdout, "stderr": subprocess.PIPE}
        return subprocess.run([sys.executable, "-c", program, *words], cwd=folder, **pipes)
    server = _started()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, open(os.devnull, "rb") as nothing:
        streams = [nothing.fileno(), output.fileno() if stdout is None else stdout, errors.fileno()]
        socket.send_fds(server, [json.dumps([program, words, folder, environment]).encode()], streams)
        code = int(server.recv(100))
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess([program, *words], code, output.read(), errors.read())


def truerank(
    *words: str, cwd: str | bytes | Path = ".", stdout: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of truerank."""
    return run(COMMAND, *words, cwd=cwd, stdout=stdout)
