"""The options of the tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof import Advice
from rlprof.errors import closest
from rlprof_nsys._program import OLDEST

if TYPE_CHECKING:
    from rlprof.config import Limits

TRACES = (
    "cublas", "cublas-verbose", "cuda", "cuda-hw", "cuda-sw", "cudnn", "cusolver",
    "cusolver-verbose", "cusparse", "cusparse-verbose", "gds", "mpi", "nvtx", "nvvideo", "openacc",
    "opengl", "openmp", "openshmem", "osrt", "oshmem", "python-gil", "syscall", "ucx", "vulkan",
)  # fmt: skip
"""All APIs that any nsys can trace; the installed one refuses those that it cannot."""
_OURS = frozenset({
    "command-file", "capture-range", "capture-range-end", "duration", "delay", "env-var", "export",
    "force-overwrite", "help", "inherit-environment", "kill", "nvtx-capture", "output", "run-as",
    "session", "session-new", "show-output", "start-later", "stats", "stop-on-exit",
    "stop-on-range-end", "trace", "wait",
})  # fmt: skip
"""Options that the tool sets itself, or that would end the program or close a window early."""
_NAME = re.compile(r"[a-z][a-z0-9-]*")


def parse_trace(value: Any) -> tuple[str, ...]:
    """Read `trace`: names in `TRACES`, as a list or as nsys writes them: `cuda,nvtx`."""
    items = value.replace(" ", "").split(",") if isinstance(value, str) else value
    items = items if isinstance(items, (list, tuple)) else [items]
    wrong = [item for item in items if item not in TRACES]
    if wrong or not items:
        hints = "".join(closest(item, TRACES) for item in wrong)
        got = ", ".join(repr(item)[:60] for item in wrong) or "none"
        raise ValueError(f"expected some of {', '.join(TRACES)}, got {got}{hints}")
    return tuple(dict.fromkeys(items))


def parse_options(value: Any) -> Mapping[str, str]:
    """Read `options`: long names of nsys options, without dashes, each with one value."""
    if not isinstance(value, Mapping):
        raise ValueError(f"expected option names with values, got {str(value)[:60]!r}")  # noqa: TRY004 -- a fault of the config
    wrong = [f"{name!r} is set by rlprof" for name in value if name in _OURS]
    for name, given in value.items():
        if not _NAME.fullmatch(str(name)):
            wrong.append(f"{name!r} is not an option name; write the long name without dashes")
        elif not isinstance(given, (str, int, float)):
            wrong.append(f"{name!r} needs text, a number, true or false")
    if wrong:
        raise ValueError("; ".join(wrong))
    return {name: str(given).lower() if isinstance(given, bool) else str(given)
            for name, given in value.items()}  # fmt: skip


def _seconds(_: Any, __: Any, value: float) -> None:
    if not 0 < value <= 3600:
        raise ValueError(f"expected a number above 0, at most 3600, got {value:g}")


@attrs.frozen
class NsysOptions:
    """Options of `nsys`."""

    mode: Literal["session", "range", "attached"] = "session"
    """`session`: the launcher starts the program idle under nsys, and calls to nsys open and close
    each window. `range`: the same launcher, but a range in the program opens and closes each
    window. `attached`: you started the program with `nsys launch`."""
    trace: tuple[str, ...] = attrs.field(
        default=("nvtx", "cuda", "osrt"), metadata={"parse": parse_trace}
    )
    """The APIs that nsys traces."""
    range: Literal["cudaProfilerApi", "nvtx"] = "cudaProfilerApi"
    """In range mode: the kind of range that opens and closes a window."""
    options: Mapping[str, str] = attrs.field(factory=dict, metadata={"parse": parse_options})
    """More nsys options, by their long names: `{cuda-graph-trace: node}`. `sample` and `cpuctxsw`
    are `none` unless you set them here."""
    env: tuple[str, ...] | None = None
    """Variables that the program may see, because a report holds all of them; `RAY_*` names
    several. The program also keeps the variables that programs and rlprof need. None: all."""
    nsys: str = "nsys"
    """The program: its path, or its name on PATH."""
    self_test: bool = True
    """Record one range before the first window, and report it if nsys does not see the range."""
    start_s: float = attrs.field(default=4.0, validator=_seconds)
    """How long `nsys start` may take; less than `limits.start_timeout_s`."""
    stop_s: float = attrs.field(default=90.0, validator=_seconds)
    """How long `nsys stop` and the wait for a whole report may take; less than
    `limits.stop_timeout_s`."""

    @property
    def collecting(self) -> dict[str, str]:
        """`options`, plus `sample` and `cpuctxsw`, which never take the defaults of nsys."""
        return {"sample": "none", "cpuctxsw": "none", **self.options}


def advise(options: NsysOptions, limits: Limits) -> list[Advice]:
    """Return what you should know before the run."""
    too_long = [
        Advice(f"must be less than limits.{name}, {most:g}; got {got:g}", option, "fault")
        for option, name in (("start_s", "start_timeout_s"), ("stop_s", "stop_timeout_s"))
        if (got := getattr(options, option)) >= (most := getattr(limits, name))
    ]
    own = "" if options.env is None else " (of the program itself only those of env)"
    return [
        *too_long,
        Advice(
            f"a report holds environment variables of all processes that nsys can read{own}, in "
            "plain text, including tokens and keys; check a report before you share it"
        ),
        Advice(
            f"training hosts need Nsight Systems {OLDEST} or newer; test it with `rlprof doctor`"
        ),
    ]
