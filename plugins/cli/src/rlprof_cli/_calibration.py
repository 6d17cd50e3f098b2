"""The cost of a tool on this host, measured once and kept: the estimates of `rlprof plan`.

An estimate is an upper bound: the sample of a tool has no pause, whereas real phases wait for a
device or for each other. Estimates are kept in the user's folder for temporary files, by tool,
options and version.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof.rundir import own_folder
from rlprof.session.interpreter import command, environment
from rlprof_cli._signals import uninterrupted

if TYPE_CHECKING:
    from rlprof.config import ToolUse


@attrs.frozen
class Calibration:
    """The cost of recording one second of the worst case of the tool."""

    slowdown: float
    """How many times as long the work takes while it is recorded."""
    bytes_per_s: float
    """Artifacts."""
    stop_per_s: float
    """Seconds the step waits when the window closes."""


def file_of(use: ToolUse) -> Path:
    """Name the file that keeps the estimate of *use*."""
    module = use.plugin.__module__
    asked = json.dumps(use.asked, sort_keys=True, default=str)
    what = [module, use.plugin.__qualname__, asked, _version(module), sys.version]
    key = hashlib.sha256("\n".join(what).encode()).hexdigest()[:24]
    return own_folder(Path(tempfile.gettempdir())) / "calibration" / f"{use.name}-{key}.json"


def _version(module: str) -> str:
    """Return the version of *module*'s distribution, or the time of a file that has none."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(module.partition(".")[0])
    file = getattr(sys.modules.get(module), "__file__", None)
    with suppress(OSError, TypeError):
        return str(Path(file).stat().st_mtime_ns)  # type: ignore[arg-type]  # none: a TypeError
    return ""


def known(use: ToolUse) -> Calibration | None:
    """Return the kept estimate of *use* on this host, if there is one."""
    try:
        return Calibration(**json.loads(file_of(use).read_bytes()))
    except (OSError, ValueError, TypeError):  # not yet, or it could not be
        return None


def can_be_measured(use: ToolUse) -> bool:
    """Whether the tool says what to measure it with, and another process can import it."""
    return hasattr(use.plugin, "sample") and use.plugin.__module__ != "__main__"


def begin(use: ToolUse) -> subprocess.Popen[bytes]:
    """Start a process that measures *use*, and ends after a minute at the latest."""
    file = file_of(use)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    env = environment() | dict.fromkeys(("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"), "")
    plugin = f"{use.plugin.__module__}:{use.plugin.__qualname__}"
    asked = json.dumps(dict(use.asked), default=str)
    argv = command("rlprof_cli.calibrate_process", plugin, asked, str(file))
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, env=env, stdin=quiet, stdout=quiet, stderr=quiet)


def measured(use: ToolUse) -> Calibration | str:
    """Measure *use* now and wait for it, or return why that is impossible."""
    if not can_be_measured(use):
        return "the tool brings no sample to measure it with"
    file = file_of(use)
    if not file.exists():
        process = None
        try:
            with uninterrupted():
                process = begin(use)
            process.wait()
        finally:
            if process is not None:
                process.kill()
                process.wait()
    found = known(use)
    if found is not None:
        return found
    try:
        return str(json.loads(file.read_bytes())["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return "it could not be measured"
    finally:
        file.unlink(missing_ok=True)  # the obstacle may be gone next time
