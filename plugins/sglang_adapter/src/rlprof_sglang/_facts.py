"""What is known of an engine, from its launch arguments and from its schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_engine.answers import version_of
from rlprof_sglang._words import STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@attrs.frozen
class Facts:
    """What is known of an engine."""

    kind: str
    """How it is reached: `Engine`, `TokenizerManager`, `http`, or the class of the handle."""
    version: str = ""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    has_dp_attention: bool = False
    """Whether the tensor-parallel ranks form the data-parallel replicas."""
    nodes: int = 1
    has_layout: bool = False
    """Whether the sizes above are known."""
    device: str = ""
    has_metrics: bool = False
    """Whether requests report when they waited."""
    is_inside: bool = False
    """Whether rlprof's code is in its schedulers, and found everything that it needs."""
    lacks: tuple[str, ...] = ()
    """What rlprof's code did not find there, because it does not know this release."""
    is_profiling: bool = False
    """Whether a session runs there, or is armed; only rlprof's code there reports it."""
    is_overdue: bool = False
    """Whether that session is of a run that is gone, so that nobody will end it."""

    @property
    def workers(self) -> int:
        """Number of its schedulers."""
        return self.tp * self.pp * (1 if self.has_dp_attention else self.dp)

    @property
    def is_npu(self) -> bool:
        """Whether SGLang's torch.profiler is torch_npu's."""
        return self.device == "npu"


def seen(handle: Any) -> Facts:
    """Read the facts of an Engine, a TokenizerManager, or any object with the same methods."""
    manager = getattr(handle, "tokenizer_manager", handle)
    arguments = getattr(manager, "server_args", None)
    known = of_arguments(_resolved(arguments))
    return attrs.evolve(
        known,
        kind=type(handle).__name__,
        version=version_of("sglang"),
        has_metrics=bool(getattr(manager, "enable_metrics", known.has_metrics)),
    )


def of_arguments(arguments: Mapping[str, Any]) -> Facts:
    """Read the facts from the launch arguments of SGLang."""
    return Facts(
        "http",
        version=str(arguments.get("version") or ""),
        tp=_size(arguments, "tp_size"),
        pp=_size(arguments, "pp_size"),
        dp=_size(arguments, "dp_size"),
        # Since 0.5.22 this is resolved to a separate size.
        has_dp_attention=arguments.get("enable_dp_attention") is True
        or _size(arguments, "attn_dp_size") > 1,
        nodes=_size(arguments, "nnodes"),
        has_layout=isinstance(arguments.get("tp_size"), int),
        device=str(arguments.get("device") or ""),
        has_metrics=arguments.get("enable_metrics") is True,
    )


def looked_inside(facts: Facts, states: Sequence[Mapping[str, Any]]) -> Facts:
    """Add what the schedulers reported: one scheduler of each replica reports."""
    ours = [state.get(STATE) for state in states if isinstance(state, dict)]
    reports = [one for one in ours if isinstance(one, dict)]
    lacks = sorted({name for one in reports for name in one.get("lacks", ())})
    return attrs.evolve(
        facts,
        is_inside=bool(reports)
        and len(reports) == len(states)
        and not lacks
        and not any("error" in one for one in reports),
        lacks=tuple(lacks),
        is_profiling=any(one.get("profiling") for one in reports),
        is_overdue=any(one.get("overdue") for one in reports),
        device=facts.device or next((str(one.get("device") or "") for one in reports), ""),
    )


def _resolved(arguments: Any) -> Mapping[str, Any]:
    """Return the resolved arguments; since 0.5.19, *arguments* itself holds the original ones."""
    resolved = getattr(arguments, "resolved_dict", None)
    if callable(resolved):
        found = resolved()
        if isinstance(found, dict):
            return found
    return {name: getattr(arguments, name, None) for name in _READ}


_READ = ("tp_size", "pp_size", "dp_size", "enable_dp_attention", "attn_dp_size", "nnodes", "device",
         "enable_metrics")  # fmt: skip


def _size(arguments: Mapping[str, Any], name: str) -> int:
    value = arguments.get(name)
    return value if isinstance(value, int) and value > 0 else 1
