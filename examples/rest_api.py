"""Serve comparisons of systems over HTTP, with the standard library alone.

POST /evaluate and /compare take the JSON {"judgements": {query: {document: grade}}, "systems": {name: {query:
{document: score}}}} with the keywords of `truerank.evaluate` and `truerank.compare`, and return `to_dict()`.
An error of the input has the status 422 and its fields: the argument, the value, what was expected and the remedies.

    python examples/rest_api.py 8000
    curl -d '{"judgements": {"7": {"a": 1}}, "systems": {"x": {"7": {"a": 2}}}}' localhost:8000/evaluate
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import truerank
from truerank.core.errors import TruerankError

FUNCTIONS = {"/evaluate": truerank.evaluate, "/compare": truerank.compare}
LARGEST = 64 << 20  # bytes of a request


def answer(path: str, body: bytes) -> tuple[int, Any]:
    """Return the status and the JSON of a request."""
    if path not in FUNCTIONS:
        return 404, {"error": f"unknown path {path}; use {' or '.join(FUNCTIONS)}"}
    try:
        asked = json.loads(body)
        judgements, systems = asked.pop("judgements"), asked.pop("systems")
        for one in (judgements, *systems.values()):  # text would be the path of a file
            if not isinstance(one, dict):
                raise TypeError("judgements and each system must be objects of objects")
        return 200, FUNCTIONS[path](judgements, systems, **asked).to_dict()
    except TruerankError as error:
        return 422, {"error": str(error)} | error.fields()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return 400, {"error": f"{type(error).__name__}: {error}"}


class Handler(BaseHTTPRequestHandler):
    """Answers POST requests."""

    def do_POST(self) -> None:
        """Read the JSON, and send that of the result."""
        length = int(self.headers.get("Content-Length", 0))
        status, found = (
            answer(self.path, self.rfile.read(length)) if length <= LARGEST else (413, {"error": "too large"})
        )
        content = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
