"""A process that measures the cost of a tool on this host, with the sample of the tool.

Called with MODULE:CLASS OPTIONS FILE. It runs the `sample` of the tool bare and recorded, and
writes the ratio, the bytes and the time of `stop` to FILE. It sees no device: a second process on
a full GPU could end the training there.
"""

from __future__ import annotations

import ctypes
import json
import os
import pkgutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from rlprof import plugins
from rlprof.config import Faults, options_of
from rlprof.errors import CaptureError
from rlprof.types import Capture, Target, Window
from rlprof_cli._signals import heed_interrupts

_SECONDS = 0.1
"""Of bare work; enough that the start of a recording does not count."""
_LONGEST_S = 60
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Measure, and write the result whole or not at all."""
    plugin, asked, file = argv
    heed_interrupts()
    signal.alarm(_LONGEST_S)
    os.nice(19)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # no other command needs it
    try:
        result: dict[str, Any] = measure(pkgutil.resolve_name(plugin), json.loads(asked))
    except CaptureError as exc:  # most often: there is no device
        result = {"error": f"it is measured without a device, and refuses that: {exc}"}
    except (Exception, SystemExit) as exc:  # code of a plugin; a missing estimate harms nothing
        result = {"error": f"{type(exc).__name__}: {exc}"}
    draft = Path(f"{file}.{os.getpid()}")
    draft.write_text(json.dumps(result))
    draft.rename(file)
    return 0


def measure(plugin: type[Any], asked: dict[str, Any]) -> dict[str, float]:
    """Run the sample of the tool bare and recorded; return the cost of a second of such work."""
    faults = Faults()
    options = options_of(plugin, asked, faults)
    if faults:
        raise ValueError(f"options are not accepted: {faults.found}")
    hooks = plugins.hooks(plugin())
    target, window = Target("calibration"), Window(0, 1)
    hooks.configure(place="process", target=target, options=options)
    rounds, bare_s = 1, 0.0
    while bare_s < _SECONDS:  # the last is the one that counts: warm, and long enough
        rounds *= 2
        bare_s = _timed(plugin.sample, rounds)
    with tempfile.TemporaryDirectory() as folder:
        raw, out = Path(folder, "raw"), Path(folder, "out")
        raw.mkdir()
        out.mkdir()
        hooks.start(window=window, target=target, folder=raw)
        recorded_s = _timed(plugin.sample, rounds)
        stop_s = _timed(lambda _: hooks.stop(window=window, folder=raw), 0)
        me = f"{plugin.__module__}:{plugin.__qualname__}"
        capture = Capture("calibration", target, window, "tool", "here", os.getpid(), asked, me)
        made = plugins.hooks(plugin()).export(capture=capture, folder=raw, out=out) or []
        size = sum((out / artifact.path).stat().st_size for artifact in made)
    return {
        "slowdown": round(max(1.0, recorded_s / bare_s), 3),
        "bytes_per_s": round(size / bare_s),
        "stop_per_s": round(stop_s / bare_s, 6),
    }


def _timed(function: Any, rounds: int) -> float:
    began = time.process_time()  # at lowest priority the wall clock counts what others do
    function(rounds)
    return time.process_time() - began
