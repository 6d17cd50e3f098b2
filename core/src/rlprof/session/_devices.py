"""Which devices a process has, by its launcher's variables, and how busy they are."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_VISIBLE = {
    "CUDA_VISIBLE_DEVICES": "cuda",
    "HIP_VISIBLE_DEVICES": "hip",
    "ROCR_VISIBLE_DEVICES": "hip",
    "ASCEND_RT_VISIBLE_DEVICES": "npu",
}


def visible(variable: str = "CUDA_VISIBLE_DEVICES") -> list[str] | None:
    """Name the devices that *variable* lists, by number or uuid; None: it is not set.

    Launchers of one process a device (torchrun) give all of them the same list, and LOCAL_RANK.
    """
    text, local = os.environ.get(variable), os.environ.get("LOCAL_RANK", "")
    if text is None:
        is_there = local.isdecimal() and Path(f"/dev/nvidia{int(local)}").exists()
        return [local] if variable == "CUDA_VISIBLE_DEVICES" and is_there else None
    names = [
        name.strip() for name in text.split(",") if name.strip() not in ("", "-1", "NoDevFiles")
    ]
    is_shared = len(names) > 1 and "LOCAL_WORLD_SIZE" in os.environ and local.isdecimal()
    return names[int(local) : int(local) + 1] if is_shared else names


def devices(host: str) -> list[str]:
    """Name the devices of this process as the manifest does: `node-a/cuda:0`."""
    found = {
        f"{host}/{kind}:{name}": None
        for variable, kind in _VISIBLE.items()
        for name in visible(variable) or ()
    }
    return list(found)


def open_devices() -> Callable[[], dict[str, float]] | None:
    """Return a function that reads the devices of this process through NVML; None: it cannot.

    NVML is NVIDIA's driver itself: CUDA is not initialised, and its context takes no memory. The
    package `nvidia-ml-py` is imported only where there is a driver.
    """
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        nvml: Any = import_module("pynvml")
        nvml.nvmlInit()
        names = visible()
        if names is None:
            names = [str(number) for number in range(nvml.nvmlDeviceGetCount())]
        handles = [
            nvml.nvmlDeviceGetHandleByIndex(int(name))
            if name.isdecimal()
            else nvml.nvmlDeviceGetHandleByUUID(name)
            for name in names
        ]
    except Exception:  # no driver, no package, no right to look, no such device
        return None
    reads: dict[str, Callable[[Any], float]] = {
        "busy": lambda handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "memory_bytes": lambda handle: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "power_w": lambda handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    }

    def read() -> dict[str, float]:
        found = {}
        for number, handle in enumerate(handles):
            for name, look in reads.items():
                with suppress(nvml.NVMLError):  # a part of a device (MIG) tells less
                    found[f"device{number}_{name}"] = look(handle)
        return found

    return read if handles else None
