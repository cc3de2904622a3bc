"""Send JSON over HTTP to a search engine, with limits, credentials and retries, and check the answers.

Credentials come from the environment: TRUERANK_ENGINE_USER and TRUERANK_ENGINE_PASSWORD, or TRUERANK_ENGINE_API_KEY.
Every request has a deadline and a size limit. Requests go only to the given address, and certificates are always
checked. Answers are checked in this module before other code uses them.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import re
import socket
import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from truerank.core.errors import EngineError, InvalidInputError
from truerank.core.printing import shown

_AGAIN = (429, 500, 502, 503, 504)
_MOST_BYTES = 1 << 26
_LONGEST = 86_400.0  # seconds
_USER, _PASSWORD, _KEY = "TRUERANK_ENGINE_USER", "TRUERANK_ENGINE_PASSWORD", "TRUERANK_ENGINE_API_KEY"


class Engine:
    """A connection to an engine at one address; proxies of the environment are ignored, and redirects are rejected.

    Parameters
    ----------
    url : str
        An http or https address without a password, query or fragment; for Solr it includes the collection,
        `http://host:8983/solr/NAME`. The certificate of an https address is checked with the certificates of the
        system, or of the file in the variable SSL_CERT_FILE.
    timeout : float, default 30
        Seconds for a request with all its tries, from the connection to the last byte of the answer; at most one day.
        The system limits the time of the host name lookup.
    retries : int, default 0
        Number of further tries within this time after no answer, or after status 429 or 5xx. The first wait is half a
        second, and each later wait is twice as long.
    """

    def __init__(self, url: str, timeout: float = 30.0, *, retries: int = 0) -> None:
        host = _host_of(url)
        if host is None:
            raise InvalidInputError(
                "expected an http or https URL without a password, ? or #, such as http://127.0.0.1:9200, got "
                f"{shown(masked_address(url))!r}. Set {_USER} and {_PASSWORD}, or {_KEY}, for credentials",
                argument="url",
            )
        if not 0 < timeout <= _LONGEST:
            raise InvalidInputError(
                argument="timeout", expected=f"a number of seconds > 0 and at most {_LONGEST:g}", value=timeout
            )
        self.url, self.timeout, self.retries, self.wait = url.rstrip("/"), timeout, retries, 0.5
        self.scores_named_queries = True  # until an answer has none
        self._host = host
        self._tls: Any = None
        if urllib.parse.urlsplit(url).scheme == "https":  # urlsplit returns small letters
            import ssl

            self._tls = ssl.create_default_context()

    def request(
        self, method: str, path: str, body: object = None, missing_ok: bool = False, form: object = None
    ) -> Any:
        """Return the answer as JSON of a given form (`checked`), or None for status 404 with `missing_ok`.

        Raises EngineError if the engine rejects the request or does not answer after all tries, or if the answer is too
        long, not JSON, or of another form. Raises InvalidInputError for values that JSON does not support.
        """
        place = f"{method} {self.url}/{path}"
        try:
            data = None if body is None else json.dumps(body, allow_nan=False).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(f"the request cannot be written as JSON: {error}") from error
        headers, end = _headers(), time.monotonic() + self.timeout
        for attempt in range(self.retries + 1):
            try:
                status, content = self._answer(method, path, data, headers, end)
                if status == 404 and missing_ok:
                    return None
                if status // 100 == 2:
                    return _read(content, form)
                reason = f"status {status}: {told(content.decode('utf-8', 'replace'), 600)}"
                if status not in _AGAIN:
                    raise EngineError(reason)
            except EngineError as error:
                raise EngineError(f"{place}: {told(error)}", code="engine-refused") from error
            except TimeoutError:
                reason = f"no answer within {self.timeout:g} s"
            except (OSError, ValueError, http.client.HTTPException) as error:  # a negative chunk size is a ValueError
                reason = f"no answer: {told(error)}"
                if "CERTIFICATE_VERIFY_FAILED" in reason:
                    reason += "; set SSL_CERT_FILE to the certificate of its issuer"
            wait = self.wait * 2**attempt
            if attempt == self.retries or time.monotonic() + wait >= end:
                break
            time.sleep(wait)
        raise EngineError(
            told(f"{place}: {reason}" + f" (tried {attempt + 1} times)" * (attempt > 0)), code="no-answer"
        )

    def search(self, index: str, body: dict[str, Any], hit: object, parameters: str = "") -> tuple[list[Any], float]:
        """Return hits of OpenSearch or Elasticsearch, each of the form `hit`, and the milliseconds of the engine.

        Raises EngineError as `request` does, and if some shards did not answer, or the answer has too many hits.
        """
        form = {"took?": float, "timed_out?": bool, "_shards?": {"failed?": float}, "hits": {"hits": [hit]}}
        answer = self.request("POST", f"{quoted(index)}/_search{parameters}", body, form=form)
        hits = answer["hits"]["hits"]
        if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
            raise EngineError(
                f"{self.url}: the engine returned a partial answer: {told(json.dumps(answer.get('_shards')), 300)}"
            )
        if len(hits) > body["size"]:
            raise EngineError(f"{self.url}: the answer has {len(hits)} documents, expected at most {body['size']}")
        return hits, float(answer.get("took", "nan"))

    def _answer(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], end: float
    ) -> tuple[int, bytes]:
        """Return the status and the content of one try, which stops at `end` (monotonic time)."""
        with _Wire(*self._host, self._tls, end) as wire:
            connection = http.client.HTTPConnection(*self._host)
            connection.sock = wire
            connection.request(method, f"{urllib.parse.urlsplit(self.url).path}/{path}", data, headers)
            answer = http.client.HTTPResponse(wire, method=method)  # type: ignore[arg-type]
            answer.begin()
            content = bytearray()
            while part := answer.read(1 << 16):
                content += part
                if len(content) > _MOST_BYTES:
                    raise EngineError(f"the answer has more than {_MOST_BYTES} bytes")
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
            return answer.status, bytes(content)


class _Wire(io.RawIOBase):
    """A connection on which every wait ends at one deadline, with TimeoutError."""

    def __init__(self, host: str, port: int, tls: Any, end: float) -> None:
        self._end = end
        self._socket = socket.socket()  # so that `close` always has a socket
        failed: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            self._socket.close()
            self._socket = socket.socket(family, kind, protocol)
            try:
                self._limited().connect(address)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if tls is not None:
                    self._socket = tls.wrap_socket(self._limited(), server_hostname=host)
                return
            except OSError as error:
                failed = error
        self.close()
        raise failed or OSError("the host has no address")

    def _limited(self) -> socket.socket:
        """Return the socket, whose next wait ends at the deadline."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket

    def sendall(self, data: bytes) -> None:
        """Send all data."""
        self._limited().sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a reader of the answer; closing it closes the connection."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._limited().recv_into(buffer)

    def close(self) -> None:
        self._socket.close()
        super().close()


def _host_of(url: str) -> tuple[str, int] | None:
    """Return host and port of a valid address, else None."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    fit = url.isascii() and url.isprintable() and not re.search("[?#@ ]", url) and port != 0
    if not fit or not host or parts.scheme not in ("http", "https"):
        return None
    return host, port or (443 if parts.scheme == "https" else 80)


def masked_address(url: str) -> str:
    """Return an address without the part before an `@`, and without the part after `?` or `#`."""
    return re.split("[?#]", re.sub(r"(?s)^(\w+://)?.*@", r"\1***@", url))[0]


def _headers() -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    key, user, password = os.environ.get(_KEY), os.environ.get(_USER), os.environ.get(_PASSWORD)
    if key:
        if not (key.isascii() and key.isprintable()):
            raise InvalidInputError(
                f"{_KEY} has a character that headers cannot have, such as a line end. Set {_KEY} again",
                code="credentials",
            )
        headers["Authorization"] = f"ApiKey {key}"
    elif user:
        headers["Authorization"] = "Basic " + _basic(user, password or "")
    return headers


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape")).decode()


def without_credentials(text: str) -> str:
    """Return a text with `***` for the password and the key, also in their Base64, JSON and URL forms."""
    key, user, password = (os.environ.get(name, "") for name in (_KEY, _USER, _PASSWORD))
    for secret in (key, password, _basic(user, password)) if key or password else ():
        for form in (secret, json.dumps(secret)[1:-1], urllib.parse.quote(secret, safe="", errors="replace")):
            text = text.replace(form, "***") if form else text
    return text


def told(what: object, most: int = 1000) -> str:
    """Return a message of an engine or the system with masked credentials, and shortened for printing."""
    return shown(" ".join(without_credentials(str(what)).split()))[:most]


def _read(content: bytes, form: object) -> Any:
    """Return the checked JSON of an answer."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        value = json.loads(content or b"null", parse_constant=refuse)
    except (ValueError, RecursionError):
        raise EngineError("the answer is not JSON") from None
    return checked(value, form)


def checked(value: Any, form: object, place: str = "") -> Any:
    """Check that a JSON value has a form, and return the value. `place` is its position in the answer, for messages.

    A form is a type (`float`: any finite number, `str`: text that UTF-8 can encode), a dict with the forms of an
    object's members (a name that ends in `?` is optional, `...` means all names), a list with the form of each item, or
    None (any value). Raises EngineError, which names the first part of another form.

    >>> checked({"took": 3, "hits": []}, {"took": float, "hits": [{"_score": float}]})
    {'took': 3, 'hits': []}
    """
    where = place.lstrip(".") or "the answer"
    if isinstance(form, dict):
        _demand(isinstance(value, dict), where, "an object", value)
        names = value if ... in form else form
        for name in names:
            key = name.removesuffix("?") if name in form else name
            if key in value:
                checked(value[key], form.get(name, form.get(...)), f"{place}.{key}")
            elif key == name:
                raise EngineError(f"the answer has an unexpected form: {told(where, 200)} has no {key!r}")
    elif isinstance(form, list):
        _demand(isinstance(value, list), where, "a list", value)
        for number, item in enumerate(value):
            checked(item, form[0], f"{place}[{number}]")
    elif form is float:
        _demand(type(value) in (int, float) and abs(value) < 1.7e308, where, "a finite number", value)
    elif form is str:
        _demand(isinstance(value, str) and not re.search("[\ud800-\udfff]", value), where, "a text", value)
    elif isinstance(form, type):
        _demand(isinstance(value, form), where, f"a {form.__name__}", value)
    return value


def _demand(holds: bool, where: str, what: str, value: object) -> None:
    if not holds:
        found = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else json.dumps(value)
        raise EngineError(
            f"the answer has an unexpected form: {told(where, 200)} must be {what}, got {told(found, 80)}"
        )


def quoted(name: str) -> str:
    """Return a name encoded as part of an address."""
    return urllib.parse.quote(name, safe="", errors="surrogateescape")


def filled(value: object, words: Mapping[str, str]) -> Any:
    """Return `value` with `{{NAME}}` replaced in every string; a name that is not in `words` is an error."""
    if isinstance(value, str):
        first, *parts = value.split("{{")
        for part in parts:
            name, closed, rest = part.partition("}}")
            if not closed or name.strip() not in words:
                raise InvalidInputError(
                    f"the request has {{{{{name}}}}}, but a query has only {', '.join(words)}", code="unknown-field"
                )
            first += words[name.strip()] + rest
        return first
    if isinstance(value, dict):
        return {key: filled(item, words) for key, item in value.items()}
    return [filled(item, words) for item in value] if isinstance(value, list) else value
