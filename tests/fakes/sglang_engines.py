"""Engines like SGLang's of 0.5.18 to 0.5.23, whose frontends fail where a test asks for it."""

from __future__ import annotations

import asyncio
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import pytest

from tests.fakes.engines import Asked
from tests.fakes.sglang_schedulers import Mode, Place, Scheduler, batch

PROFILER = "sglang.srt.managers.scheduler_components.profiler_manager.SchedulerProfilerManager"
ProfileReqType = Enum("ProfileReqType", {"START_PROFILE": 1, "STOP_PROFILE": 2})
HookType = Enum("HookType", {"BEFORE": "before", "AFTER": "after", "AROUND": "around"})


@attrs.define
class ProfileReq:
    req_type: ProfileReqType = ProfileReqType.START_PROFILE
    output_dir: str | None = None
    start_step: int | None = None
    num_steps: int | None = None
    activities: list[str] | None = None
    profile_by_stage: bool = False
    with_stack: bool | None = None
    record_shapes: bool | None = None
    profile_id: str | None = None
    merge_profiles: bool = False


@attrs.define
class ProfileReqOutput:
    success: bool
    message: str


STOP = ProfileReq(ProfileReqType.STOP_PROFILE)


class SchedulerDiedError(Exception):
    """A scheduler has raised, which ends the engine."""


class Replica:
    """The schedulers of one engine, and what reaches them."""

    def __init__(self, schedulers: Sequence[Scheduler]) -> None:
        self.schedulers = schedulers
        self.killed_by = ""
        """What a scheduler raised, or that it was killed; empty: it lives."""

    def ask(self, request: Any) -> Any:
        """Send a request to profile to all schedulers; return the first answer."""
        answers = [self._alive(one.part._profile, request) for one in self.schedulers]
        return answers[0]

    def step(self, mode: Mode) -> None:
        for scheduler in self.schedulers:
            self._alive(scheduler.run_batch, batch(mode))

    def states(self) -> list[Any]:
        firsts = [
            one for one in self.schedulers if (one.part.place.tp, one.part.place.pp) == (0, 0)
        ]
        return [self._alive(one.get_internal_state).internal_state for one in firsts]

    def _alive(self, method: Callable[..., Any], *given: Any) -> Any:
        if self.killed_by:
            raise SchedulerDiedError(self.killed_by)
        try:
            return method(*given)
        except Exception as exc:
            self.killed_by = f"{type(exc).__name__}: {exc}"
            raise SchedulerDiedError(self.killed_by) from exc


class TokenizerManager(Asked):
    """The frontend: it raises before it asks the schedulers, and blocks after they answer."""

    def __init__(self, replica: Replica, arguments: Any) -> None:
        super().__init__()
        self.replica, self.server_args = replica, arguments
        self.event_loop: asyncio.AbstractEventLoop | None = None
        self.rid_to_state: dict[str, Any] = {}
        self.enable_metrics = arguments.enable_metrics
        self._queue = asyncio.Lock()
        self._answered = 0

    @property
    def gracefully_exit(self) -> bool:
        return bool(self.replica.killed_by)

    async def start_profile(self, req: ProfileReq | None = None) -> Any:
        return await self._later("start_profile", {"req": req})

    async def stop_profile(self) -> Any:
        return await self._later("stop_profile", {})

    async def get_internal_state(self) -> Any:
        return await self._later("get_internal_state", {})

    def generate(self, prompt: str, tokens: int = 4) -> str:
        self._answered += 1
        name = f"r{self._answered}"
        state = self.rid_to_state[name] = self._state()
        for number in range(tokens):
            self.replica.step(Mode.DECODE if number else Mode.EXTEND)
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
        self.calls.append((method, given))
        if method in self.raises:
            raise self.raises[method]
        try:
            answer = getattr(self, f"_{method}")(**given)
        except SchedulerDiedError:
            await asyncio.Event().wait()  # no answer comes any more
        gate = self.gates.get(method)
        while gate is not None and not gate.is_set():
            await asyncio.sleep(0.01)
        return answer

    def _start_profile(self, req: ProfileReq) -> Any:
        answer = self.replica.ask(req)
        if not answer.success:
            raise RuntimeError(answer.message)
        return answer

    def _stop_profile(self) -> Any:
        return self._start_profile(STOP)

    def _get_internal_state(self) -> list[Any]:
        return self.replica.states()


loops: list[asyncio.AbstractEventLoop] = []
"""The loops of all Engines, for a test to close."""


class Engine:
    """SGLang's Engine: its loop runs only during a call."""

    def __init__(self, manager: Any) -> None:
        self.tokenizer_manager = manager
        self.loop = asyncio.new_event_loop()
        loops.append(self.loop)

    def start_profile(self, **fields: Any) -> None:
        request = ProfileReq(**fields)
        self.loop.run_until_complete(self.tokenizer_manager.start_profile(request))

    def generate(self, prompt: str, tokens: int = 4) -> str:
        async def there() -> str:
            return str(self.tokenizer_manager.generate(prompt, tokens))

        return self.loop.run_until_complete(there())


def manager(
    *, tp: int = 1, pp: int = 1, dp: int = 1, is_resolved: bool = True, **launched: Any
) -> TokenizerManager:
    """Make a TokenizerManager with these launch arguments, and its schedulers."""
    arguments = server_args({"tp_size": tp, "pp_size": pp, "dp_size": dp} | launched, is_resolved)
    sizes = {"tp": tp, "pp": pp, "dp": dp}
    ranks = itertools.product(range(dp), range(pp), range(tp))
    schedulers = [Scheduler(Place(*rank[::-1], sizes), arguments) for rank in ranks]
    for scheduler in schedulers:
        put_hooks(scheduler)
    return TokenizerManager(Replica(schedulers), arguments)


def engine(**how: Any) -> Engine:
    """Make an Engine that has had a call, and so belongs to its own loop."""
    made = Engine(manager(**how))
    made.tokenizer_manager.event_loop = made.loop
    return made


def server_args(launched: Mapping[str, Any], is_resolved: bool) -> Any:
    """Make SGLang's launch arguments; from 0.5.19 on, resolved values are kept apart."""
    decided = {
        "sleep_on_idle": False, "pp_size": 1, "device": "cpu", "enable_metrics": False,
        "nnodes": 1, "enable_dp_attention": False, **launched,
    }  # fmt: skip
    made = SimpleNamespace(**decided)
    if is_resolved:
        made.resolved_dict = lambda: dict(decided)
        made.device = launched.get("device")  # the record itself holds what was asked
    return made


@contextmanager
def installed() -> Iterator[None]:
    """Put stand-ins for the modules of SGLang that rlprof uses into sys.modules."""
    hooks = {"hooks": {}, "register": classmethod(_register)}
    plugins = {"HookRegistry": type("HookRegistry", (), hooks), "HookType": HookType}
    structs = {one.__name__: one for one in (ProfileReq, ProfileReqOutput, ProfileReqType)}
    home = PROFILER.rpartition(".")[0]
    modules: dict[str, Mapping[str, Any]] = {
        "sglang": {"__version__": "0.5.23"}, "sglang.srt": {}, "sglang.srt.managers": {},
        "sglang.srt.managers.io_struct": structs, home.rpartition(".")[0]: {}, home: {},
        "sglang.srt.plugins": {}, "sglang.srt.plugins.hook_registry": plugins,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, content in modules.items():
            made = ModuleType(name)
            made.__spec__ = ModuleSpec(name, None, is_package=True)
            made.__path__ = []
            vars(made).update(content)
            patch.setitem(sys.modules, name, made)
        yield


def _register(cls: Any, target: str, hook: Any, hook_type: Any, *, source: Any = None) -> None:
    cls.hooks[target] = (hook, hook_type.name)


def put_hooks(scheduler: Scheduler) -> None:
    registry = sys.modules.get("sglang.srt.plugins.hook_registry")
    for target, (hook, _) in {} if registry is None else registry.HookRegistry.hooks.items():
        if target == f"{PROFILER}._profile":
            part, own = scheduler.part, type(scheduler.part)._profile
            part._profile = functools.wraps(own)(functools.partial(hook, own, part))
        else:
            scheduler.around[target.rpartition(".")[2]] = hook
