"""vLLM's HTTP server, and what it refuses."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_vllm._facts import METHODS, Facts, looked_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NOT_BEGUN = (400, 422)
"""A server that answers so has not asked the engine."""
_HTTP_S = 3600
"""A server answers `/stop_profile` when all is written, which takes minutes; core's own limit is
what counts."""


class RefusedError(CaptureError):
    """It has not begun; what may be recording there is somebody else's to stop."""


class Server:
    """vLLM's HTTP server."""

    def __init__(self, address: str, directory: str) -> None:
        self._address = address.rstrip("/")
        self.facts = Facts("http", directory=directory)

    @property
    def loop(self) -> None:
        """None: any will do."""

    @property
    def is_unborn(self) -> bool:
        """Never: it lives elsewhere."""
        return False

    @property
    def is_errored(self) -> bool:
        """Never known before it is asked."""
        return False

    async def look(self) -> None:
        """Read what it can do from its own description; its profiler's folder nobody tells."""
        paths = (await self._ask("GET", "/openapi.json", missing={})).get("paths", {})
        takes_body = "requestBody" in paths.get("/start_profile", {}).get("post", {})
        version = (await self._ask("GET", "/version", missing={})).get("version", "")
        self.facts = attrs.evolve(
            self.facts,
            version=str(version),
            parameters=("profile_prefix", "max_iterations") if takes_body else (),
            profiler=None if "/start_profile" in paths else "",
            can_tell_workers="/collective_rpc" in paths,
            methods=tuple(name for name in METHODS if f"/{name}" in paths),
        )

    async def look_inside(self) -> None:
        """Ask the workers of a server that lets itself be asked."""
        self.facts = await looked_inside(self.facts, self.call)

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Ask the route of that name."""
        if method.startswith("is_"):
            return bool((await self._ask("GET", f"/{method}")).get(method))
        if method == "collective_rpc":
            body = {"method": args[0], "args": list(kwargs.get("args", ()))}
            return (await self._ask("POST", f"/{method}", body) or {}).get("results")
        return await self._ask("POST", f"/{method}", kwargs)

    async def run(self, function: Callable[[], object]) -> None:
        """Call it: its frontend is in another process."""
        function()

    async def _ask(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, missing: Any = None
    ) -> Any:
        """Ask on a thread of its own: a process waits at its end for those of an executor."""
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def ask() -> None:
            try:
                answer.set_result(self._answer(verb, path, body, missing))
            except Exception as exc:  # handed to who waits
                answer.set_exception(exc)

        threading.Thread(target=ask, name="rlprof-vllm-http", daemon=True).start()
        return await asyncio.wrap_future(answer)

    def _answer(self, verb: str, path: str, body: Mapping[str, Any] | None, missing: Any) -> Any:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(  # noqa: S310 -- the address the user attached
            self._address + path, data, {"Content-Type": "application/json"}, method=verb
        )
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_S) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as exc:
            if exc.code == 404 and missing is not None:
                exc.close()
                return missing
            raise _refusal(self._address, path, exc) from None
        except OSError as exc:
            raise CaptureError(f"vllm: {self._address} does not answer: {exc}") from None
        return json.loads(text) if text.strip() else None


def _refusal(address: str, path: str, exc: urllib.error.HTTPError) -> CaptureError:
    said = exc.read(500).decode("utf-8", "replace")
    exc.close()
    if exc.code == 404:
        return RefusedError(
            f"vllm: {address} has no {path}: it was launched without a profiler; launch it with "
            "the arguments that rlprof.launch gives"
        )
    if exc.code == 409:
        return RefusedError(f"vllm: somebody else is profiling {address}")
    kind = RefusedError if exc.code in _NOT_BEGUN else CaptureError
    return kind(f"vllm: {address}{path} answered {exc.code}: {said}")
