"""The devices of a process, by the variables of its launcher."""

from __future__ import annotations

import os
from pathlib import Path

_VISIBLE = {
    "CUDA_VISIBLE_DEVICES": "cuda",
    "HIP_VISIBLE_DEVICES": "hip",
    "ROCR_VISIBLE_DEVICES": "hip",
    "ASCEND_RT_VISIBLE_DEVICES": "npu",
}


def visible_devices(variable: str = "CUDA_VISIBLE_DEVICES") -> list[str] | None:
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
        for name in visible_devices(variable) or ()
    }
    return list(found)
