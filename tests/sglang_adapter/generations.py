"""Engines with exactly the signatures of one release of SGLang, and the modules they come from."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, make_dataclass
from enum import Enum
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.fakes.sglang_engines import Engine, Replica, Stand
from tests.fakes.sglang_schedulers import Place, Scheduler
from tests.sglang_adapter.signatures import kept

SAID = kept()
"""Release → what was read in its wheel."""
ProfileReqType = Enum("ProfileReqType", {"START_PROFILE": 1, "STOP_PROFILE": 2})
PROFILER = "sglang.srt.managers.scheduler_components.profiler_manager.SchedulerProfilerManager"


def manager(
    release: str, *, tp: int = 1, pp: int = 1, dp: int = 1, late_s: float = 0.0,
    **launched: Any,
) -> Any:  # fmt: skip
    """Make a TokenizerManager of *release*, launched so, with schedulers behind it."""
    arguments = server_args(release, {"tp_size": tp, "pp_size": pp, "dp_size": dp} | launched)
    sizes = {"tp": tp, "pp": pp, "dp": dp}
    places = [
        Place(one_tp, one_pp, one_dp, sizes)
        for one_dp in range(dp)
        for one_pp in range(pp)
        for one_tp in range(tp)
    ]
    schedulers = [Scheduler(place, arguments) for place in places]
    for scheduler in schedulers:
        put_hooks(scheduler)
    replica = Replica(schedulers, late_s)
    return manager_class(release)(replica, arguments)


def engine(release: str, **how: Any) -> Engine:
    """Make an Engine of *release*, that was asked before: it belongs to its own loop."""
    made = Engine(manager(release, **how))
    made.tokenizer_manager.event_loop = made.loop
    return made


def manager_class(release: str) -> type[Stand]:
    """Make a TokenizerManager with the methods of that release."""
    methods: dict[str, Any] = {}
    for name, signature in SAID[release]["TokenizerManager"].items():
        if signature is not None and signature.startswith("async"):
            exec(f"{signature}:\n    return await self._later({name!r}, locals())", methods)  # noqa: S102
    del methods["__builtins__"]
    return type("TokenizerManager", (Stand,), methods)


def server_args(release: str, launched: Mapping[str, Any]) -> Any:
    """Make what SGLang was launched with, with the fields and defaults of that release."""
    fields = SAID[release]["ServerArgs"]
    known = {name: ast.literal_eval(said) for name, said in fields.items() if said is not None}
    if set(launched) - set(known):
        raise TypeError(f"{release}: ServerArgs has no {sorted(set(launched) - set(known))}")
    decided = {**known, "device": "cpu", **launched}
    made = SimpleNamespace(**decided)
    if SAID[release]["ServerArgs.resolved_dict"]:
        made.resolved_dict = lambda: dict(decided)
        made.device = launched.get("device")  # the record itself holds what was asked
    return made


@contextmanager
def installed(release: str) -> Iterator[None]:
    """Have the modules of that release imported, as far as rlprof knows any."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules(release).items():
            patch.setitem(sys.modules, name, module)
        yield


def modules(release: str) -> dict[str, ModuleType]:
    """Make them."""
    structs = io_struct(release)
    made = {"sglang": {"__version__": release.partition("==")[2]}, "sglang.srt": {},
            "sglang.srt.managers": {}, "sglang.srt.managers.io_struct": structs}  # fmt: skip
    home = PROFILER.rpartition(".")[0]
    made |= {home.rpartition(".")[0]: {}, home: {}}
    kinds = SAID[release]["plugins"]["HookType"].items()
    hook_type = Enum("HookType", {name: ast.literal_eval(said) for name, said in kinds})
    registry = type("HookRegistry", (), {"hooks": {}, "register": classmethod(_register)})
    made |= {"sglang.srt.plugins": {}, "sglang.srt.plugins.hook_registry":
             {"HookRegistry": registry, "HookType": hook_type}}  # fmt: skip
    return {name: _module(name, content) for name, content in made.items()}


def _register(cls: Any, target: str, hook: Any, hook_type: Any, *, source: Any = None) -> None:
    cls.hooks[target] = (hook, hook_type.name)


def _module(name: str, content: Mapping[str, Any]) -> ModuleType:
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None, is_package=True)
    made.__path__ = []
    vars(made).update(content)
    return made


def io_struct(release: str) -> dict[str, Any]:
    """Make the requests to profile of that release, and their answer."""
    said = SAID[release]["requests"]
    names = {"ProfileReqType": ProfileReqType}
    request = _struct("ProfileReq", said["ProfileReq"], names)
    output = _struct("ProfileReqOutput", said["ProfileReqOutput"], names)

    def made(what: str, words: Mapping[str, Any]) -> Any:
        """Make a request as the frontend does."""
        return request(req_type=ProfileReqType[what], **words)

    return {**names, "ProfileReq": request, "ProfileReqOutput": output, "made": made}


def _struct(name: str, fields: Mapping[str, str], names: Mapping[str, Any]) -> type:
    """Make a class of those fields, with those defaults."""
    made = [(one, Any, field(default=eval(said, dict(names)))) if said else (one, Any)  # noqa: S307
            for one, said in fields.items()]  # fmt: skip
    return make_dataclass(name, made)


def put_hooks(scheduler: Scheduler) -> None:
    """Put what a plugin has registered around its methods, as SGLang does."""
    registry = sys.modules.get("sglang.srt.plugins.hook_registry")
    for target, (hook, _) in {} if registry is None else registry.HookRegistry.hooks.items():
        if target == f"{PROFILER}._profile":
            part, own = scheduler.part, type(scheduler.part)._profile
            part._profile = functools.wraps(own)(functools.partial(hook, own, part))
        else:
            scheduler.around[target.rpartition(".")[2]] = hook
