"""The devices of this process through NVML, NVIDIA's driver itself: CUDA is not initialised."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlprof.rundir import visible_devices

if TYPE_CHECKING:
    from collections.abc import Callable


def open_devices() -> Callable[[], dict[str, float]] | None:
    """Return a function that reads the devices of this process through NVML; None: it cannot.

    NVML is NVIDIA's driver itself: CUDA is not initialised, and its context takes no memory. The
    package `nvidia-ml-py` is imported only where there is a driver.
    """
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        nvml: Any = import_module("pynvml")
        nvml.nvmlInit()
        names = visible_devices()
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
