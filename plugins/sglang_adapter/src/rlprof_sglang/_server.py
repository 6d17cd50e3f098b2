"""SGLang's HTTP server, reached by its address."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_engine import engine
from rlprof_engine.http import Http
from rlprof_sglang._facts import Facts, looked_inside, of_arguments
from rlprof_sglang._words import FRONTEND, MARK, STATE

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence


class Engine(engine.Engine):
    """One engine of SGLang; the usual answers are those of a server."""

    facts: Facts
    is_local: bool
    """Whether its first scheduler certainly sees the files of this host."""

    @property
    def is_resting(self) -> bool:
        """Whether its loop runs only during a call, on the calling thread."""
        return False

    @property
    def is_late(self) -> bool:
        """Whether a resting engine has not answered its previous call yet."""
        return False

    def drive(
        self, hook: Coroutine[Any, Any, Any], within_s: float, *, begins: bool = False
    ) -> Any:
        """Run *hook* on a resting engine's own loop, on this thread; never cut it short.

        If it *begins* a recording, refuse it where another thread may run that loop meanwhile.
        """
        raise NotImplementedError

    async def order(self, text: str) -> list[dict[str, Any]]:
        """Pass an order on to the schedulers; return the answer of the first in each replica.

        If a server watches its requests, its answer comes last.
        """
        # On a node that was launched without rlprof, this request records nothing.
        nothing = {"activities": ["rlprof"], "with_stack": False, "record_shapes": False}
        await self.start({"output_dir": MARK + text, **nothing})
        states = await self.states()
        answers = [(state.get(STATE) or {}).get("answer") for state in states]
        answers += [state.get(FRONTEND) for state in states]
        return [json.loads(answer) for answer in answers if answer]

    async def states(self) -> Sequence[Mapping[str, Any]]:
        """Ask the schedulers for their state: one state per replica."""
        raise NotImplementedError

    async def start(self, fields: Mapping[str, Any]) -> None:
        """Send a request to start profiling."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Send a request to stop; it is no error if nothing runs."""
        raise NotImplementedError


class Server(Engine):
    """SGLang's HTTP server."""

    def __init__(self, address: str, admin_api_key: str | None) -> None:
        headers = {"Authorization": f"Bearer {admin_api_key}"} if admin_api_key else {}
        self._has_key = bool(admin_api_key)
        self._http = Http("sglang", address, self._refusal, headers)
        self.facts = Facts("http")
        self.is_local = _is_here(address)

    async def look(self) -> None:
        """Read how it was launched, and whether rlprof's code is in its schedulers."""
        info = await self._info()
        self.facts = looked_inside(of_arguments(info), info.get("internal_states") or [])

    async def states(self) -> Sequence[Mapping[str, Any]]:
        """Ask the schedulers for their state: one state per replica."""
        found: list[Mapping[str, Any]] = (await self._info()).get("internal_states") or []
        return found

    async def _info(self) -> Mapping[str, Any]:
        info = await self._http.ask("GET", "/server_info", missing={})
        return info if isinstance(info, dict) else {}

    async def start(self, fields: Mapping[str, Any]) -> None:
        """Post the request; the server ignores fields that it does not know."""
        await self._http.ask("POST", "/start_profile", fields)

    async def stop(self) -> None:
        """Post the request; a server gives no reason for a refusal, but usually nothing runs."""
        try:
            await self._http.ask("POST", "/stop_profile")
        except UnsaidError:
            self.facts = attrs.evolve(self.facts, is_profiling=False)

    def _refusal(self, path: str, code: int, reason: str) -> CaptureError:
        where = self._http.address + path
        if code in (401, 403):
            other = "a key other than admin_api_key"
            how = other if self._has_key else "the server's key; set admin_api_key"
            return RefusedError(f"sglang: {where} asks for {how}")
        if code == 404:
            return RefusedError(f"sglang: {where} is not there; is it an SGLang server?")
        if code == 500:
            return UnsaidError(f"sglang: {where} refused; the server's log says why")
        kind = RefusedError if code < 500 else CaptureError  # else a proxy's: unknown
        return kind(f"sglang: {where} answered {code}: {reason}")


class RefusedError(CaptureError):
    """A refusal by the frontend: no scheduler was called."""


class UnsaidError(CaptureError):
    """A refusal by a scheduler, without a reason; another scheduler may have begun."""


def _is_here(address: str) -> bool:
    """Whether *address* is one of this host's."""
    import socket
    from urllib.parse import urlsplit

    host = urlsplit(address).hostname or ""
    if host in ("localhost", "127.0.0.1", "::1", "0.0.0.0"):  # noqa: S104 -- compared, not bound
        return True
    try:
        with socket.create_server((host, 0)):  # only an address of this host can be bound
            return True
    except OSError:
        return False
