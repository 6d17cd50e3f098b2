"""vLLM's HTTP server, and its refusals."""

from __future__ import annotations

import json
from typing import Any

import attrs

from rlprof import CaptureError
from rlprof_engine import engine
from rlprof_engine.http import Http
from rlprof_vllm._facts import METHODS, Facts, looked_inside
from rlprof_vllm.inside import METHOD

_NOT_BEGUN = (400, 422)
"""Status codes of a server that has not called the engine."""


class RefusedError(CaptureError):
    """The session has not begun; a session that runs there is not ours to stop."""


class Engine(engine.Engine):
    """One engine of vLLM; the usual answers are those of a server."""

    facts: Facts

    @property
    def is_unborn(self) -> bool:
        """Whether the first call will bind it, for good, to the loop of the caller."""
        return False

    async def look_inside(self) -> None:
        """Check whether the workers loaded our plugin, by a call that cannot fail there."""
        self.facts = await looked_inside(self.facts, self.call)

    async def order(self, text: str) -> list[dict[str, Any]]:
        """Pass an order on to the workers; return the answers of all, or of one replica's."""
        found = await self.call("collective_rpc", METHOD, args=(text,))
        return [json.loads(answer) for answer in found or ()]

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the engine."""
        raise NotImplementedError


class Server(Engine):
    """vLLM's HTTP server."""

    def __init__(self, address: str, directory: str) -> None:
        self._http = Http("vllm", address, self._refusal)
        self.facts = Facts("http", directory=directory)

    async def look(self) -> None:
        """Read its API description, which does not contain the folder of its profiler."""
        ask = self._http.ask
        paths = (await ask("GET", "/openapi.json", missing={})).get("paths", {})
        takes_body = "requestBody" in paths.get("/start_profile", {}).get("post", {})
        version = (await ask("GET", "/version", missing={})).get("version", "")
        self.facts = attrs.evolve(
            self.facts,
            version=str(version),
            parameters=("profile_prefix", "max_iterations") if takes_body else (),
            profiler=None if "/start_profile" in paths else "",
            can_tell_workers="/collective_rpc" in paths,
            methods=tuple(name for name in METHODS if f"/{name}" in paths),
        )

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Send a request to the route of that name."""
        if method.startswith("is_"):
            return bool((await self._http.ask("GET", f"/{method}")).get(method))
        if method == "collective_rpc":
            body = {"method": args[0], "args": list(kwargs.get("args", ()))}
            return (await self._http.ask("POST", f"/{method}", body) or {}).get("results")
        return await self._http.ask("POST", f"/{method}", kwargs)

    def _refusal(self, path: str, code: int, reason: str) -> CaptureError:
        address = self._http.address
        if code == 404:
            return RefusedError(
                f"vllm: {address} has no {path}: it was launched without a profiler; launch it "
                "with the arguments that rlprof.launch gives"
            )
        if code == 409:
            return RefusedError(f"vllm: somebody else is profiling {address}")
        kind = RefusedError if code in _NOT_BEGUN else CaptureError
        return kind(f"vllm: {address}{path} answered {code}: {reason}")
