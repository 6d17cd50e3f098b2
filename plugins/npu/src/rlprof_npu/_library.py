"""The installed torch_npu: whether it can record here, and which options it has.

rlprof reads private state of torch_npu here, and never changes it.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_npu._options import DOMAIN, LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof_npu._options import NpuOptions

_OTHERS = {
    "PROFILING_MODE": "msprof", "PROFILER_SAMPLECONFIG": "msprof",
    "MSMONITOR_USE_DAEMON": "msmonitor", "KINETO_USE_DAEMON": "msmonitor",
    "PROF_CONFIG_PATH": "torch_npu's dynamic_profile",
}  # fmt: skip
"""Variables that announce another profiler. Beside msprof, torch_npu records nothing silently."""


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
    """Return the first line of the exception that led to *exc*."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    lines = str(exc).strip().splitlines() or [type(exc).__name__]
    return lines[0][:300]


def refuse_beside_others(env: Mapping[str, str] | None = None) -> None:
    """Raise CaptureError where another profiler has the device, or may take it at any time."""
    env = os.environ if env is None else env
    for name, who in _OTHERS.items():
        if env.get(name, "") not in ("", "0"):
            raise CaptureError(
                f"{name} is set, so {who} may record too, and two lose data; unset it for this run"
            )


def is_recording(torch: Any) -> bool:
    """Whether a profiler of torch or torch_npu records in this process."""
    if torch.autograd.profiler._is_profiler_enabled or torch._C._autograd._profiler_enabled():
        return True
    module: Any = sys.modules.get("torch_npu.profiler._profiler_path_creator")
    made: Any = getattr(getattr(module, "ProfPathCreator", None), "_instance", None)
    paths = made.values() if isinstance(made, dict) else ()
    return any(getattr(one, "is_prof_inited", False) for one in paths)


def experimental(profiler: Any, options: NpuOptions) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields for `_ExperimentalConfig`, and the options this release lacks.

    Its signature decides: the vendor's release branches keep older forms under newer versions.
    """
    known = inspect.signature(profiler._ExperimentalConfig.__init__).parameters
    include = dict.fromkeys([*options.mstx_domain_include, DOMAIN])
    asked: dict[str, Any] = {
        "l2_cache": options.l2_cache,
        "op_attr": options.op_attr,
        "record_op_args": options.record_op_args,
        "host_sys": [_member(profiler, "HostSystem", name.upper()) for name in options.host_sys],
        "sys_io": options.sys_io,
        "sys_interconnection": options.sys_interconnection,
        "mstx" if "mstx" in known else "msprof_tx": options.has_marks,
        "mstx_domain_include": list(include) if options.mstx_domain_include else [],
        "mstx_domain_exclude": list(options.mstx_domain_exclude),
        "aic_metrics": _member(profiler, "AiCMetrics", options.metrics),
    }
    if options.gc_detect_threshold is not None:
        asked["gc_detect_threshold"] = options.gc_detect_threshold
    asked = {name: value for name, value in asked.items() if _is_asked(value)}
    why = f"this torch_npu, {sys.modules['torch_npu'].__version__}, cannot; a later one may"
    lacks = {name: why for name in asked if name not in known or None in _listed(asked[name])}
    exports = [getattr(profiler.ExportType, name.capitalize()) for name in options.export_type]
    fields = {
        "profiler_level": getattr(profiler.ProfilerLevel, LEVELS[options.level]),
        "export_type": exports[0] if len(exports) == 1 else exports,  # the older ones take no list
        "data_simplification": True,
        **asked,
    }
    fields = {name: value for name, value in fields.items() if name in known and name not in lacks}
    return fields, {"mstx" if name == "msprof_tx" else name: why for name in lacks}


def _is_asked(value: Any) -> bool:
    return value is not False and value != []  # 0 means all collections


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _member(profiler: Any, kind: str, name: str) -> Any:
    return getattr(getattr(profiler, kind, None), name, None)
