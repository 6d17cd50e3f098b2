"""The torch_npu that is installed: whether it can record here, and what it can be asked."""

from __future__ import annotations

import inspect
import os
import sys
from typing import TYPE_CHECKING, Any, cast

from rlprof import CaptureError
from rlprof_npu._options import DOMAIN, LEVELS
from rlprof_npu._raw import first_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof_npu._options import NpuOptions

_MSPROF = ("PROFILING_MODE", "PROFILER_SAMPLECONFIG")
_MONITORS = ("MSMONITOR_USE_DAEMON", "KINETO_USE_DAEMON")
_WATCHED = "PROF_CONFIG_PATH"
_OFF = frozenset({"", "0"})


def import_library() -> Any:
    """Return torch_npu; raise CaptureError, in one sentence, where it cannot record."""
    try:
        __import__("torch")
        import torch_npu
    except ModuleNotFoundError as exc:
        what = f"{exc.name} is not installed"
        raise CaptureError(f"npu: {what}; install the torch_npu made for your torch") from exc
    except (ImportError, OSError, RuntimeError) as exc:
        # torch loads torch_npu by itself, and hides the cause one or two levels down.
        raise CaptureError(
            f"npu: torch_npu cannot be imported: {_cause(exc)}; install CANN and source its "
            "set_env.sh before the run"
        ) from exc
    if not torch_npu.npu.device_count():
        raise CaptureError(
            f"npu: torch_npu {torch_npu.__version__} sees no NPU here, without which it profiles "
            "nothing, the CPU included; leave npu out of this role, or look at npu-smi info"
        )
    return torch_npu


def _cause(exc: BaseException) -> str:
    """Return the first line of what *exc* came of."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    lines = str(exc).strip().splitlines() or [type(exc).__name__]
    return lines[0][:300]


def refuse_beside_others(env: Mapping[str, str] | None = None) -> None:
    """Raise CaptureError where another profiler has the device, or may take it at any time."""
    env = os.environ if env is None else env
    for name in _MSPROF:
        if env.get(name):
            raise CaptureError(
                f"{name} is set, so msprof records this process and torch_npu would record "
                f"nothing and not say so; start the run without msprof, or unset {name}"
            )
    for name in _MONITORS:
        if env.get(name, "") not in _OFF:
            raise CaptureError(
                f"{name} is set, so msmonitor may start a profiler at any time, and two lose "
                f"data; unset {name} for this run"
            )
    if env.get(_WATCHED):
        raise CaptureError(
            f"{_WATCHED} is set, so torch_npu's dynamic_profile may start a profiler at any "
            f"time, and two lose data; unset {_WATCHED} for this run"
        )
    if _is_dynamic():
        raise CaptureError(
            "torch_npu's dynamic_profile was started in this process and may record at any time, "
            "and two lose data; leave out dynamic_profile.init for this run"
        )


def _is_dynamic() -> bool:
    module: Any = sys.modules.get("torch_npu.profiler.dynamic_profile")
    made: Any = getattr(getattr(module, "_DynamicProfile", None), "_instance", None)
    ones = made.values() if isinstance(made, dict) else ()
    return any(getattr(one, "repeat_init", False) for one in ones)


def is_recording(torch: Any) -> bool:
    """Whether a profiler of torch or torch_npu records in this process."""
    if torch.autograd.profiler._is_profiler_enabled or torch._C._autograd._profiler_enabled():
        return True
    return any(getattr(one, "is_prof_inited", False) for one in _paths())


def _paths() -> list[Any]:
    """Return what the library knows its folder by, if it has recorded yet."""
    module: Any = sys.modules.get("torch_npu.profiler._profiler_path_creator")
    made: Any = getattr(getattr(module, "ProfPathCreator", None), "_instance", None)
    return list(made.values()) if isinstance(made, dict) else []


def was_alone(folder: Path) -> bool:
    """Whether the library records in *folder* still, and so nobody has begun or ended another."""
    return all(
        getattr(one, "is_prof_inited", True)
        and str(getattr(one, "_prof_path", folder)).startswith(str(folder))
        for one in _paths()
    )


def forget(folder: Path) -> None:
    """Let the library record again after it failed to begin or to end in *folder*."""
    for one in _paths():
        if str(getattr(one, "_prof_path", "")).startswith(str(folder)):
            one.is_prof_inited = False


class Overheard:
    """What the library prints while the block runs: its errors are printed, and nothing else.

    All that is written goes on to where it was going, that of other threads, too.
    """

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._stream: Any = None

    def __enter__(self) -> Overheard:
        self._stream, sys.stdout = sys.stdout, cast("Any", self)
        return self

    def __exit__(self, *_: object) -> None:
        if cast("Any", sys.stdout) is self:
            sys.stdout = self._stream

    def write(self, text: str) -> int:
        """Pass *text* on, and keep what is called an error."""
        found = first_error(text)
        if found:
            self.errors.append(found)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def experimental(profiler: Any, options: NpuOptions) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields for `_ExperimentalConfig`, and what this release has no field for.

    By its signature: the vendor's release branches keep older forms under newer versions.
    """
    known = inspect.signature(profiler._ExperimentalConfig.__init__).parameters
    include = dict.fromkeys([*options.mstx_domain_include, DOMAIN])
    asked: dict[str, Any] = {
        "l2_cache": options.l2_cache,
        "op_attr": options.op_attr,
        "record_op_args": options.record_op_args,
        "gc_detect_threshold": options.gc_detect_threshold,
        "host_sys": [_member(profiler, "HostSystem", name.upper()) for name in options.host_sys],
        "sys_io": options.sys_io,
        "sys_interconnection": options.sys_interconnection,
        "mstx" if "mstx" in known else "msprof_tx": options.has_marks,
        "mstx_domain_include": list(include) if options.mstx_domain_include else [],
        "mstx_domain_exclude": list(options.mstx_domain_exclude),
    }
    release = f"this torch_npu, {_version()}, "
    lacks = {
        "mstx" if name == "msprof_tx" else name: f"{release}cannot; a later one may"
        for name, value in asked.items()
        if name not in known and _is_asked(value)
    }
    for name, value in zip(options.host_sys, asked["host_sys"], strict=True):
        if value is None:
            lacks[name] = f"{release}does not record it of the host"
    fields = {
        "profiler_level": getattr(profiler.ProfilerLevel, LEVELS[options.level]),
        "aic_metrics": _member(profiler, "AiCMetrics", options.metrics),
        "export_type": _exports(profiler, options),
        "data_simplification": True,
        **{name: value for name, value in asked.items() if name in known and _is_asked(value)},
    }
    if "host_sys" in fields:
        fields["host_sys"] = [one for one in fields["host_sys"] if one is not None]
    if fields["aic_metrics"] is None:
        lacks["aic_metrics"] = f"{release}has no {options.metrics}"
        del fields["aic_metrics"]
    return {name: value for name, value in fields.items() if name in known}, lacks


def _is_asked(value: Any) -> bool:
    return value is not False and value is not None and value != []  # 0 is: all collections


def _exports(profiler: Any, options: NpuOptions) -> Any:
    members = [getattr(profiler.ExportType, name.capitalize()) for name in options.export_type]
    return members[0] if len(members) == 1 else members  # the older ones take no list


def _member(profiler: Any, kind: str, name: str) -> Any:
    return getattr(getattr(profiler, kind, None), name, None)


def _version() -> str:
    return str(getattr(sys.modules.get("torch_npu"), "__version__", "?"))
