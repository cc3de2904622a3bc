"""JSON over HTTP with a live search engine: the one place of its limits, credentials, retries, and of filled requests.

Credentials come from the environment: TRUERANK_ENGINE_USER and TRUERANK_ENGINE_PASSWORD, or TRUERANK_ENGINE_API_KEY.
Every request has a time limit; nothing is sent to another address than the one that was given.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from truerank.core.errors import EngineError, InvalidInputError

_AGAIN = (429, 500, 502, 503, 504)
_MOST_BYTES = 1 << 28


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Answers that send elsewhere are errors: no request leaves for another address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Engine:
    """A connection to one engine at one address. Proxies of the environment are not used, redirects are refused.

    Parameters
    ----------
    url : str
        Address, http or https, without a password in it; of Solr with the collection, `http://host:8983/solr/NAME`.
    timeout : float, default 30
        Seconds for each request.
    retries : int, default 0
        Further tries after no answer, or the answers 429 and 5xx; the wait doubles from half a second.
    """

    def __init__(self, url: str, timeout: float = 30.0, *, retries: int = 0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise InvalidInputError(
                "expected a URL such as http://127.0.0.1:9200, http://… or https://… without a password in it, got "
                f"{parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()!r}; credentials are read from "
                "TRUERANK_ENGINE_USER and TRUERANK_ENGINE_PASSWORD, or TRUERANK_ENGINE_API_KEY"
            )
        if not timeout > 0:
            raise InvalidInputError(f"timeout must be a number of seconds > 0, got {timeout!r}")
        self.url, self.timeout, self.retries, self.wait = url.rstrip("/"), timeout, retries, 0.5
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())

    def request(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        """The answer as JSON; None for 404 where that is expected.

        Raises
        ------
        EngineError
            When the engine refuses the request, gives no answer after all tries, too long a one, or no JSON.
        """
        place = f"{method} {self.url}/{path}"
        request = urllib.request.Request(f"{self.url}/{path}", method=method, headers=_headers())
        request.data = None if body is None else json.dumps(body, allow_nan=False).encode()
        for attempt in range(self.retries + 1):
            try:
                with self._opener.open(request, timeout=self.timeout) as answer:
                    content = answer.read(_MOST_BYTES + 1)
                if len(content) > _MOST_BYTES:
                    raise EngineError(f"{place}: the answer has more than {_MOST_BYTES} bytes")
                return json.loads(content or b"null")
            except EngineError:
                raise
            except urllib.error.HTTPError as error:
                if error.code == 404 and missing_ok:
                    return None
                reason = f"status {error.code}: {error.read(2000).decode('utf-8', 'replace')[:600]}"
                if error.code not in _AGAIN:
                    raise EngineError(f"{place}: {reason}") from error
            except ValueError:
                reason = "the answer is no JSON"
            except (OSError, http.client.HTTPException) as error:
                reason = f"no answer within {self.timeout:g} s: {getattr(error, 'reason', error)}"
            if attempt < self.retries:
                time.sleep(self.wait * 2**attempt)
        raise EngineError(f"{place}: {reason}" + f" (tried {self.retries + 1} times)" * (self.retries > 0))


def _headers() -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    key = os.environ.get("TRUERANK_ENGINE_API_KEY")
    user, password = os.environ.get("TRUERANK_ENGINE_USER"), os.environ.get("TRUERANK_ENGINE_PASSWORD")
    if key:
        headers["Authorization"] = f"ApiKey {key}"
    elif user:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    return headers


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """`value` with `{{NAME}}` filled in, in every string.

    Raises
    ------
    InvalidInputError
        For a name that is not among `words`.
    """
    if isinstance(value, str):
        first, *parts = value.split("{{")
        for part in parts:
            name, closed, rest = part.partition("}}")
            if not closed or name.strip() not in words:
                raise InvalidInputError(f"the request asks for {{{{{name}}}}}; a query has: {', '.join(words)}")
            first += words[name.strip()] + rest
        return first
    if isinstance(value, dict):
        return {key: filled(item, words) for key, item in value.items()}
    return [filled(item, words) for item in value] if isinstance(value, list) else value
