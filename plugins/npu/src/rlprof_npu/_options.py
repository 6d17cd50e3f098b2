"""The options of `npu`; verl's words mean the same here.

torch_npu resets values that it rejects and continues, so all are checked here, before the run.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ACTIVITIES = ("npu", "cpu")
CONTENTS = (*ACTIVITIES, "memory", "shapes", "module", "stack")
LEVELS = {"none": "Level_none", "0": "Level0", "1": "Level1", "2": "Level2"}
"""Our word → the library's."""
METRICS = (
    "AiCoreNone", "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB",
    "ResourceConflictRatio", "L2Cache", "MemoryAccess",
)  # fmt: skip
EXPORTS = ("text", "db")
HOST_SYSTEMS = ("cpu", "mem", "disk", "network", "osrt", "numa")
_OF_DEVICE = ("l2_cache", "op_attr", "record_op_args", "host_sys", "sys_io", "sys_interconnection",
              "mstx", "mstx_domain_include", "mstx_domain_exclude")  # fmt: skip
DOMAIN = "rlprof"
"""The mstx domain of our ranges."""


def _one(known: Sequence[str], value: Any) -> str:
    """Return which of *known* is meant by *value*, in any case of letters."""
    folded = {word.lower(): word for word in known}
    found = folded.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        hint = closest(value, known)
        raise ValueError(f"expected one of {', '.join(known)}, got {value!a}{hint}")
    return found


def _some(known: Sequence[str], value: Any) -> tuple[str, ...]:
    items = value.replace(" ", "").split(",") if isinstance(value, str) else value
    items = items if isinstance(items, (list, tuple)) else [items]
    return tuple(dict.fromkeys(_one(known, item) for item in items))


def _level(value: Any) -> str:
    """Read `level`: `none`, 0, 1, 2; also verl's `level0` and torch_npu's `Level0`."""
    text = str(value).lower() if isinstance(value, str) or type(value) is int else ""
    word = text.removeprefix("level").removeprefix("_")
    if word not in LEVELS:
        raise ValueError(f"expected none, 0, 1 or 2, got {value!a}")
    return word


def _analysis(value: Any) -> str:
    """Read `analysis`: `none` or `after`; verl says false and true."""
    found = {False: "none", True: "after"}[value] if isinstance(value, bool) else value
    if found not in ("none", "after"):
        raise ValueError(f"expected none (or false) or after (or true), got {value!a}")
    return str(found)


def _exports(value: Any) -> tuple[str, ...]:
    found = _some(EXPORTS, value)
    if not found:
        raise ValueError("is empty; give text, db, or both")
    return tuple(sorted(found))


def _number(what: str, least: float, value: Any) -> float:
    if type(value) not in (int, float) or not least <= value <= 1e9:
        raise ValueError(f"expected {what}, got {value!a}")
    return float(value)


def _field(parse: Callable[[Any], Any], default: Any = None) -> Any:
    return attrs.field(default=default, metadata={"parse": parse})


@attrs.frozen
class NpuOptions:
    """Options of `npu`."""

    contents: tuple[str, ...] = _field(partial(_some, CONTENTS), ())
    """What to record; without `npu` and `cpu`, both are recorded."""
    level: str = _field(_level, "0")
    """Detail of the device: `none` (only marks), 0, 1 (communication, AI Core metrics), or 2."""
    aic_metrics: str | None = _field(partial(_one, METRICS))
    """AI Core metrics, from level 1 on; default there: PipeUtilization."""
    l2_cache: bool = False
    """Record the L2 cache."""
    op_attr: bool = False
    """Record attributes of operators; only a `db` has them."""
    record_op_args: bool = False
    """Record arguments of operators, for AOE tuning."""
    gc_detect_threshold: float | None = _field(partial(_number, "milliseconds, 0 or more", 0))
    """Record garbage collections that take longer, in ms; 0: all. Needs `cpu`."""
    export_type: tuple[str, ...] = _field(_exports, ("text",))
    """What the analysis writes: `text` (csv and json; a trace for the timeline), `db`, or both."""
    host_sys: tuple[str, ...] = _field(partial(_some, HOST_SYSTEMS), ())
    """Record parts of the host: `cpu`, `mem`, `disk`, `network`, `osrt`, `numa`."""
    sys_io: bool = False
    """Record NIC and RoCE."""
    sys_interconnection: bool = False
    """Record HCCS and PCIe."""
    mstx: bool | None = None
    """Record marks, including those of phases; default: if the device is recorded."""
    mstx_domain_include: tuple[str, ...] = ()
    """Record only these domains; our domain `rlprof` is always included."""
    mstx_domain_exclude: tuple[str, ...] = ()
    """Record all domains but these."""
    analysis: str = _field(_analysis, "after")
    """`after`: torch_npu's analysis runs after the window, in a separate process; `none`: the raw
    data are kept for an analysis elsewhere."""
    analysis_timeout_s: float = _field(partial(_number, "seconds, more than 0", 1e-3), 540.0)
    """The time limit of the analysis; it must be less than `limits.export_timeout_s`."""

    @property
    def activities(self) -> tuple[str, ...]:
        """What is recorded: of the device, of the host, or of both."""
        return tuple(one for one in ACTIVITIES if one in self.contents) or ACTIVITIES

    @property
    def has_marks(self) -> bool:
        """Whether mstx is recorded."""
        return "npu" in self.activities if self.mstx is None else self.mstx

    @property
    def metrics(self) -> str:
        """The AI Core metrics to record: nothing is left to defaults, which differ by version."""
        return self.aic_metrics or ("PipeUtilization" if self.level in "12" else "AiCoreNone")

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """What CANN may leave out or replace without torch_npu reporting it."""
        names = ("op_attr", "host_sys", "sys_io", "sys_interconnection")
        asked = [name for name in names if getattr(self, name)]
        return (*asked, *(["MemoryAccess"] if self.metrics == "MemoryAccess" else ()))


def conflicts(options: NpuOptions) -> list[str]:
    """List what torch_npu would silently leave out, because of other options."""
    metrics = None if options.aic_metrics == "AiCoreNone" else options.aic_metrics
    device = ["level"] if options.level != "0" else []
    device += ["aic_metrics"] if metrics else []
    device += [name for name in _OF_DEVICE if getattr(options, name)]
    host = [one for one in options.contents if one in ("shapes", "module", "stack")]
    host += [] if options.gc_detect_threshold is None else ["gc_detect_threshold"]
    include, exclude = options.mstx_domain_include, options.mstx_domain_exclude
    wrong = {
        f"only with the device it records {', '.join(device)}; add npu to contents":
            device and "npu" not in options.activities,
        f"only with the host it records {', '.join(host)}; add cpu to contents":
            host and "cpu" not in options.activities,
        f"aic_metrics {metrics} is recorded from level 1 on; set level: 1":
            metrics and options.level not in "12",
        "level none records marks alone; leave mstx on, or set level: 0":
            options.level == "none" and options.mstx is False,
        "mstx is off, so it has no domains to choose; leave mstx on":
            (include or exclude) and options.mstx is False,
        "mstx_domain_include and mstx_domain_exclude exclude each other; give one":
            include and exclude,
        "op_attr is written into a db only; set export_type: [text, db]":
            options.op_attr and "db" not in options.export_type,
        "op_attr is not recorded at level none; set level: 0":
            options.op_attr and options.level == "none",
    }  # fmt: skip
    return [words for words, is_wrong in wrong.items() if is_wrong]


_HEAVIEST = ("stack", "module", "shapes", "memory")
"""Optional contents, the most expensive first (stacks: 12 us an event)."""


def lighter(options: NpuOptions) -> NpuOptions | None:
    """Leave out the most expensive of the contents, then go down to level 0."""
    for name in _HEAVIEST:
        if name in options.contents:
            left = tuple(other for other in options.contents if other != name)
            return attrs.evolve(options, contents=left)
    if options.level == "2":
        return attrs.evolve(options, level="1")
    if options.level == "1":
        return attrs.evolve(options, level="0", aic_metrics=None)
    return None
