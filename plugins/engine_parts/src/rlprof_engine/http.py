"""Requests to an engine's HTTP server, on our own threads."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_engine.calls import aside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HTTP_S = 3600
"""A server answers a stop only after it wrote its files, which takes minutes. Core's own limit is
the one that counts."""


class Http:
    """A server at one address."""

    def __init__(
        self,
        engine: str,
        address: str,
        refusal: Callable[[str, int, str], CaptureError],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if "://" not in address:
            raise CaptureError(f"{engine}: {address!r} is not an address; write http://{address}")
        self.address = address.rstrip("/")
        self._engine = engine
        self._refusal = refusal
        """Makes an error from a path, a status code and the text of an answer."""
        self._headers = {"Content-Type": "application/json", **(headers or {})}

    async def ask(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, missing: Any = None
    ) -> Any:
        """Send a request on its own thread; return the answer as parsed JSON, or as text.

        *missing*: what to return if the server does not have *path*.
        """
        return await aside(lambda: self._answer(verb, path, body, missing))

    def _answer(self, verb: str, path: str, body: Mapping[str, Any] | None, missing: Any) -> Any:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(  # noqa: S310 -- the address the user attached
            self.address + path, data, self._headers, method=verb
        )
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_S) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as exc:
            reason = exc.read(500).decode("utf-8", "replace")
            exc.close()
            if exc.code == 404 and missing is not None:
                return missing
            raise self._refusal(path, exc.code, reason) from None
        except OSError as exc:
            raise CaptureError(f"{self._engine}: {self.address} does not answer: {exc}") from None
        if not text.strip():
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text.decode("utf-8", "replace")
