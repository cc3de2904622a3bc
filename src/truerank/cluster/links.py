"""Links: direct connections between members, which send arrays without copies.

A link is one-way. The member that listens gives the others its door: host, port and a secret token, which every sender
must present. On a cluster under TLS the links use TLS with the worker's certificates.
"""

from __future__ import annotations

import hmac
import pickle
import secrets
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from truerank.core.errors import ClusterError

_GREETING = struct.Struct("!16sQI")  # token, number of the program, rank of the member that sends
_GREETING_SECONDS = 10.0  # for all of a greeting, that of TLS included
_MOST_GREETINGS = 32  # at a time; who comes later waits with the system
_CONNECT_SECONDS = 5.0
_LONGEST_WAIT = 3600.0  # whoever knows better interrupts
_SIZE = struct.Struct("!Q")


@dataclass(frozen=True)
class Door:
    """Address and token of a member."""

    host: str
    port: int
    token: bytes


class Link:
    """A connection on which one member sends and another receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.settimeout(_LONGEST_WAIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def to(cls, door: Door, number: int, rank: int, context: Any) -> Link:
        """Connect as member `rank` of program `number`. Raises OSError if the door cannot be reached."""
        connection = socket.create_connection((door.host, door.port), _CONNECT_SECONDS)
        try:
            if context is not None:
                connection = context.wrap_socket(connection, server_hostname=door.host)
            connection.sendall(_GREETING.pack(door.token, number, rank))
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def send(self, value: object) -> None:
        """Send a value. Returns when the system has accepted all bytes."""
        buffers: list[pickle.PickleBuffer] = []
        parts = [memoryview(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))]
        parts += [buffer.raw() for buffer in buffers]
        self._socket.sendall(b"".join(_SIZE.pack(size) for size in (len(parts), *(part.nbytes for part in parts))))
        for part in parts:
            self._socket.sendall(part)

    def receive(self) -> Any:
        """Wait for a value. Raises OSError if the connection ends."""
        (n_parts,) = _SIZE.unpack(_exactly(self._socket, _SIZE.size))
        sizes = [size for (size,) in _SIZE.iter_unpack(_exactly(self._socket, _SIZE.size * n_parts))]
        body, *buffers = [_exactly(self._socket, size) for size in sizes]
        return pickle.loads(body, buffers=buffers)

    def interrupt(self) -> None:
        """End all waits for this link, from another thread."""
        _interrupt(self._socket)

    def close(self) -> None:
        """Close the connection; bytes that were sent still arrive."""
        self._socket.close()

    __del__ = close  # of a program that never begins


class Listener:
    """Accepts the links of other members at its `door`.

    It listens on the host `bind` at the first free port of `ports`; `announce` is the host that others use. The SSL
    `context` must not be shared: it is changed to send no TLS tickets. The bound method `greeted` is called on any
    thread with the number of the program, the rank of the sender and the link. Only a weak reference to it is kept, so
    the listener ends with its owner.
    """

    def __init__(
        self, bind: str, announce: str, ports: range, context: Any, greeted: Callable[[int, int, Link], None]
    ) -> None:
        if context is not None:
            # Whoever sends would not read the tickets, and closing with unread bytes throws away what is under way.
            context.num_tickets = 0
        listening = _first_free(bind, ports)
        self.door = Door(announce, listening.getsockname()[1], secrets.token_bytes(16))
        arguments = listening, self.door.token, context, weakref.WeakMethod(greeted)
        threading.Thread(target=_listen, args=arguments, daemon=True).start()
        weakref.finalize(greeted.__self__, _interrupt, listening)  # type: ignore[attr-defined]


def _first_free(host: str, ports: range) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    failed = None
    for port in ports:
        try:
            return socket.create_server((host, port), family=family)
        except OSError as error:
            failed = error
    raise ClusterError(
        f"a worker cannot listen on {host} at any port of truerank.ports={ports.start}:{ports.stop - 1} ({failed}); "
        "allow more of them"
    )


def _listen(listening: socket.socket, token: bytes, context: object, greeted: weakref.WeakMethod[Any]) -> None:
    places = threading.Semaphore(_MOST_GREETINGS)

    def greet(connection: socket.socket) -> None:
        try:
            _greet(connection, token, context, greeted)
        finally:
            places.release()

    with listening:
        while greeted() is not None:
            places.acquire()
            try:
                connection, _ = listening.accept()
            except OSError:
                places.release()
                time.sleep(0.1)  # too many open files, or the end
                continue
            threading.Thread(target=greet, args=(connection,), daemon=True).start()


def _greet(connection: socket.socket, token: bytes, context: Any, greeted: weakref.WeakMethod[Any]) -> None:
    """Pass on a link if the sender presents the token in time."""
    deadline = threading.Timer(_GREETING_SECONDS, lambda: _interrupt(connection))
    deadline.daemon = True
    try:
        deadline.start()
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            connection.do_handshake()  # type: ignore[attr-defined]
        shown, number, rank = _GREETING.unpack(_exactly(connection, _GREETING.size))
    except (OSError, ValueError):
        connection.close()
        return
    finally:
        deadline.cancel()
    welcome = greeted()
    if welcome is None or not hmac.compare_digest(shown, token):
        connection.close()
        return
    welcome(number, rank, Link(connection))


def _exactly(connection: socket.socket, size: int) -> bytearray:
    there = bytearray(size)
    rest = memoryview(there)
    while rest:
        n = connection.recv_into(rest)
        if n == 0:
            raise ConnectionResetError("the other side has hung up")
        rest = rest[n:]
    return there


def _interrupt(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of an SSL socket would go on in clear text


def connection_context(worker: Any) -> Any:
    """Return the SSL context of a Dask worker for outgoing connections; None without TLS."""
    return None if worker is None else worker.security.get_connection_args("worker")["ssl_context"]


def listener_of(worker: Any, greeted: Callable[[int, int, Link], None]) -> Listener:
    """Return a listener on the host of a Dask worker, or on the loopback interface if `worker` is None.

    Raises
    ------
    ClusterError
        If no port of the configuration `truerank.ports` is free.
    """
    if worker is None:
        return Listener("127.0.0.1", "127.0.0.1", range(1), None, greeted)
    from distributed.comm.addressing import get_address_host

    context = worker.security.get_listen_args("worker")["ssl_context"]
    bind, announce = get_address_host(worker.listen_address), get_address_host(worker.address)
    return Listener(bind, announce, _ports_allowed(), context, greeted)


def _ports_allowed() -> range:
    from dask import config

    said = str(config.get("truerank.ports", 0))
    first, _, last = said.partition(":")
    try:
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise ClusterError(f"truerank.ports must be a port or first:last, got {said!r}") from None
