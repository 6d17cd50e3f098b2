"""What is known of an engine: from its own record of its arguments, and what its schedulers say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_engine.answers import parameters_of
from rlprof_sglang._words import STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SINCE = {
    "merge_profiles": (0, 5, 3, 2),
    "profile_id": (0, 5, 15),
    "detailed_annotations": (0, 5, 19),
}
"""Fields of a request to profile, and the release that first takes each."""
EXACT = (0, 5, 16)
"""Before, a session of N steps without a first one recorded N - 1."""
RANGES = (0, 5, 14)
"""Since then each forward step runs in a range of torch's, in which its stage is looked at."""
SPANS = (0, 5, 11)
"""Since then each forward step has a span in a trace."""


@attrs.frozen
class Facts:
    """What is known of an engine."""

    kind: str
    """What reaches it: `Engine`, `TokenizerManager`, `http`, or the handle's own class."""
    version: str = ""
    parameters: tuple[str, ...] = ()
    """What its `start_profile` takes; `req`: one object."""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    has_dp_attention: bool = False
    """Whether replicas of data parallelism are made of the ranks of tensor parallelism."""
    nodes: int = 1
    has_layout: bool = False
    """Whether the sizes above are known."""
    device: str = ""
    sleeps: bool | None = None
    """Whether a scheduler with nothing to do sleeps; else it spins, which a trace is full of."""
    has_metrics: bool = False
    """Whether requests say when they waited."""
    is_inside: bool = False
    """Whether rlprof's code is in its schedulers, and has found there all that it needs."""
    lacks: tuple[str, ...] = ()
    """What its code did not find there: this release is not known."""
    is_profiling: bool = False
    """Whether somebody's session runs there, or is armed; only rlprof's code there tells."""
    is_overdue: bool = False
    """Whether it is one of a run that has gone, and nobody will end it."""

    @property
    def release(self) -> tuple[int, ...]:
        """The version to compare: (0, 5, 21), (0, 5, 3, 2) of `0.5.3.post2`; () if unknown."""
        return release(self.version)

    @property
    def workers(self) -> int:
        """How many schedulers it has."""
        return self.tp * self.pp * (1 if self.has_dp_attention else self.dp)

    @property
    def is_npu(self) -> bool:
        """Whether torch_npu stands behind SGLang's torch.profiler."""
        return self.device == "npu"

    def takes(self, field: str) -> bool:
        """Whether a request to profile has *field* in this release; unknown: it has."""
        since = _SINCE.get(field)
        return since is None or not self.release or self.release >= since


def release(version: str) -> tuple[int, ...]:
    """Return a version to compare."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)(?:\.?post(\d+))?", version)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def seen(handle: Any) -> Facts:
    """Look at an Engine, a TokenizerManager, or anything with methods of their names."""
    manager = getattr(handle, "tokenizer_manager", handle)
    arguments = getattr(manager, "server_args", None)
    known = of_arguments({} if arguments is None else _resolved(arguments))
    return attrs.evolve(
        known,
        kind=type(handle).__name__,
        version=_version(),
        parameters=parameters_of(getattr(manager, "start_profile", None)),
        has_metrics=bool(getattr(manager, "enable_metrics", known.has_metrics)),
    )


def of_arguments(said: Mapping[str, Any]) -> Facts:
    """Read what SGLang was launched with."""
    sleeps = said.get("sleep_on_idle")
    return Facts(
        "http",
        version=str(said.get("version") or ""),
        tp=_size(said, "tp_size"),
        pp=_size(said, "pp_size"),
        dp=_size(said, "dp_size"),
        # Since 0.5.22 that is resolved to a size of its own.
        has_dp_attention=said.get("enable_dp_attention") is True or _size(said, "attn_dp_size") > 1,
        nodes=_size(said, "nnodes"),
        has_layout=isinstance(said.get("tp_size"), int),
        device=str(said.get("device") or ""),
        sleeps=sleeps if isinstance(sleeps, bool) else None,
        has_metrics=said.get("enable_metrics") is True,
    )


def looked_inside(facts: Facts, states: Sequence[Mapping[str, Any]]) -> Facts:
    """Look at what the schedulers have said of themselves: one of each replica does."""
    ours = [state.get(STATE) for state in states if isinstance(state, dict)]
    said = [one for one in ours if isinstance(one, dict)]
    lacks = sorted({name for one in said for name in one.get("lacks") or ()})
    return attrs.evolve(
        facts,
        is_inside=bool(said)
        and len(said) == len(states)
        and not lacks
        and not any("error" in one for one in said),
        lacks=tuple(lacks),
        is_profiling=any(one.get("profiling") for one in said),
        is_overdue=any(one.get("overdue") for one in said),
        device=facts.device or next((str(one.get("device") or "") for one in said), ""),
    )


def _resolved(arguments: Any) -> Mapping[str, Any]:
    """Return what was decided; since 0.5.19 the record itself holds what was asked."""
    resolved = getattr(arguments, "resolved_dict", None)
    if callable(resolved):
        found = resolved()
        if isinstance(found, dict):
            return found
    return {name: getattr(arguments, name, None) for name in _READ}


_READ = ("tp_size", "pp_size", "dp_size", "enable_dp_attention", "attn_dp_size", "nnodes", "device",
         "sleep_on_idle", "enable_metrics")  # fmt: skip


def _size(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name)
    return value if isinstance(value, int) and value > 0 else 1


def _version() -> str:
    import sys

    return str(getattr(sys.modules.get("sglang"), "__version__", ""))
