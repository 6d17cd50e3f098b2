"""Frontends that ask as SGLang's do, and go wrong where they are told to.

The schedulers behind them are real enough to die. The methods have no signatures of their own;
`tests/sglang_adapter/generations.py` gives them those of a release.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from tests.fakes.sglang_schedulers import Mode, Scheduler, batch


class SchedulerDiedError(Exception):
    """A scheduler has raised, which ends the engine."""


class Replica:
    """The schedulers of one engine, and what reaches them."""

    def __init__(self, schedulers: Sequence[Scheduler], late_s: float = 0.0) -> None:
        self.schedulers = schedulers
        self.killed_by = ""
        """What a scheduler raised, or that it was killed; empty: it lives."""
        self._late_s = late_s
        self._late: list[threading.Thread] = []

    @property
    def is_dead(self) -> bool:
        """Whether one of them has ended: the others go with it."""
        return bool(self.killed_by)

    def ask(self, request: Any) -> Any:
        """Have all answer a request to profile; only the first answer is looked at."""
        for scheduler in self.schedulers:
            is_late = scheduler.part.place.pp > 0 and self._late_s
            scheduler.part.late = self._later if is_late else lambda write: write()
        answers = [self._alive(one.answered, request) for one in self.schedulers]
        return answers[0]

    def step(self, mode: Mode, dp: int = 0) -> None:
        """Run a batch in the schedulers of one rank of data parallelism."""
        for scheduler in self.schedulers:
            if scheduler.part.place.dp == dp:
                self._alive(scheduler.run_batch, batch(mode))

    def states(self) -> list[Any]:
        """Have the first of each rank of data parallelism say what it is in."""
        firsts = [
            one for one in self.schedulers if (one.part.place.tp, one.part.place.pp) == (0, 0)
        ]
        return [self._alive(one.get_internal_state).internal_state for one in firsts]

    def _alive(self, method: Callable[..., Any], *given: Any) -> Any:
        if self.is_dead:
            raise SchedulerDiedError(self.killed_by)
        try:
            return method(*given)
        except Exception as exc:
            self.killed_by = f"{type(exc).__name__}: {exc}"
            raise SchedulerDiedError(self.killed_by) from exc

    def _later(self, write: Callable[[], None]) -> None:
        thread = threading.Timer(self._late_s, write)
        self._late.append(thread)
        thread.start()


class Stand:
    """What every fake TokenizerManager has behind its methods."""

    def __init__(self, replica: Replica, arguments: Any) -> None:
        self.replica, self.server_args = replica, arguments
        self.event_loop: asyncio.AbstractEventLoop | None = None
        self.rid_to_state: dict[str, Any] = {}
        self.enable_metrics = arguments.enable_metrics
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Every call of a method, with all its arguments."""
        self.raises: dict[str, Exception] = {}
        """Method → what it raises, before it asks the schedulers."""
        self.gates: dict[str, threading.Event] = {}
        """Method → what its answer waits for; what asks the same way waits behind it."""
        self._queue = asyncio.Lock()
        self._answered = 0

    @property
    def gracefully_exit(self) -> bool:
        """Whether the frontend has seen that a scheduler is dead."""
        return self.replica.is_dead

    def called(self, method: str) -> list[dict[str, Any]]:
        """Return the arguments of every call of *method*."""
        return [given for name, given in self.calls if name == method]

    def asked(self) -> list[dict[str, Any]]:
        """Return what every start was asked, without what was left out."""
        return [_said(given) for given in self.called("start_profile")]

    def generate(self, prompt: str, tokens: int = 4, dp: int = 0) -> str:
        """Answer; the same prompt has the same answer."""
        self._answered += 1
        name = f"r{self._answered}"
        state = self.rid_to_state[name] = self._state()
        for number in range(tokens):
            self.replica.step(Mode.DECODE if number else Mode.EXTEND, dp)
            state.time_stats.last_time = time.monotonic()
        del self.rid_to_state[name]
        meta = {"id": name, "finish_reason": {"type": "length"}, "completion_tokens": tokens}
        state.out_list.append({"text": "", "meta_info": meta})
        return prompt[::-1] * tokens

    def _state(self) -> Any:
        now = time.monotonic()
        stats = SimpleNamespace(created_time=now, first_token_time=now, last_time=now)
        return SimpleNamespace(out_list=[], time_stats=stats, created_time=time.time())

    async def _later(self, method: str, given: dict[str, Any]) -> Any:
        if self.event_loop is None:
            self.event_loop = asyncio.get_running_loop()
        if method in ("start_profile", "stop_profile"):
            async with self._queue:
                return await self._answer(method, given)
        return await self._answer(method, given)

    async def _answer(self, method: str, given: dict[str, Any]) -> Any:
        given = {name: value for name, value in given.items() if name != "self"}
        self.calls.append((method, given))
        if method in self.raises:
            raise self.raises[method]
        try:
            answer = getattr(self, f"_{method}")(**given)
        except SchedulerDiedError:
            await asyncio.Event().wait()  # nobody answers any more
        gate = self.gates.get(method)
        while gate is not None and not gate.is_set():
            await asyncio.sleep(0.01)
        return answer

    def _start_profile(self, req: Any = None, **keywords: Any) -> Any:
        from sglang.srt.managers import io_struct

        words = keywords if req is None else _said({"req": req})
        return self._told(io_struct.made("START_PROFILE", words))

    def _stop_profile(self) -> Any:
        from sglang.srt.managers import io_struct

        return self._told(io_struct.made("STOP_PROFILE", {}))

    def _told(self, request: Any) -> Any:
        answer = self.replica.ask(request)
        if not answer.success:
            raise RuntimeError(answer.message)
        return answer

    def _get_internal_state(self) -> list[Any]:
        return self.replica.states()


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said of a session, in either shape."""
    whole = vars(given["req"]) if "req" in given else given
    kinds = ("type", "req_type")
    return {
        name: one for name, one in whole.items() if one not in (None, False) and name not in kinds
    } | {name: one for name, one in whole.items() if name in ("with_stack", "record_shapes")}


loops: list[asyncio.AbstractEventLoop] = []
"""Those of all Engines made, for a test to close."""


class Engine:
    """SGLang's Engine: its loop runs only while it is asked something."""

    def __init__(self, manager: Any) -> None:
        self.tokenizer_manager = manager
        self.loop = asyncio.new_event_loop()
        loops.append(self.loop)

    def start_profile(self, **fields: Any) -> None:
        """Start, as its users do."""
        from sglang.srt.managers import io_struct

        request = io_struct.ProfileReq(**fields)
        self.loop.run_until_complete(self.tokenizer_manager.start_profile(request))

    def stop_profile(self) -> None:
        """Stop, as its users do."""
        self.loop.run_until_complete(self.tokenizer_manager.stop_profile())

    def generate(self, prompt: str, tokens: int = 4) -> str:
        """Answer, on its own loop."""

        async def there() -> str:
            return str(self.tokenizer_manager.generate(prompt, tokens))

        return self.loop.run_until_complete(there())
