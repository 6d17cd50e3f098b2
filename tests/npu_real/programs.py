"""Programs on the real torch_npu, to be run in a process of their own: PROGRAM CONFIG."""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path

import rlprof
from rlprof.config import choose_tools, load_config
from rlprof_npu import Npu

OPERATORS = 2000


def train(config):
    """Train for three steps, in phases that nest."""
    torch = _torch()
    with rlprof.open(config, role=os.environ.get("ROLE", "actor")) as prof:
        for step in prof.steps(range(1, 4)):
            with prof.phase("update_actor"), prof.phase('inner "phase"'):
                began = time.time_ns()
                _work(torch, 200)
                print("worked", began, time.time_ns(), flush=True)
                time.sleep(0.5 * (step == 2))  # what stands in for msprof puts its kernels there


def fail(config):
    """Fail in a phase, as training may."""
    torch = _torch()
    with rlprof.open(config, role="actor") as prof:
        for _ in prof.steps(range(1, 4)):
            try:
                with prof.phase("update_actor"), prof.phase("inner"):
                    _work(torch, 10)
                    raise RuntimeError("out of memory")
            except RuntimeError:
                pass


def be_killed(config):
    """Be killed in a window."""
    torch = _torch()
    prof = rlprof.open(config, role="actor", rank=0, world_size=1)
    prof.step(2)
    with prof.phase("update_actor"):
        print("operators", OPERATORS * 10, flush=True)
        _work(torch, OPERATORS * 10)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)


def handed_on(config):
    """Begin a window on a thread that ends, end it on this one, and then record two more."""
    torch = _torch()
    with rlprof.open(config | {"steps": [2, 3, 4]}, role="actor") as prof:
        prof.step(2)
        phase = prof.phase("update_actor")

        def begin():
            phase.__enter__()
            _work(torch, OPERATORS)

        one = threading.Thread(target=begin)
        one.start()
        one.join()
        phase.__exit__(None, None, None)
        for step in (3, 4):
            prof.step(step)
            with prof.phase("update_actor"):
                _work(torch, OPERATORS)


def torch_alone(config):
    """Train with torch, where torch_npu is installed and nobody has imported it."""
    train_with(__import__("torch"), config)
    print("trained", flush=True)


def each(config):
    """Start and stop the tool with each of the options in ASKED; leave what came of each."""
    torch = _torch()
    mstx = __import__("torch_npu").npu.mstx
    home = Path(config["run_dir"]).parent
    target, log = rlprof.Target("actor"), Path(os.environ["STAND_IN_LOG"])
    with (home / "each").open("w") as lines:
        for number, asked in enumerate(json.loads(os.environ["ASKED"])):
            folder = home / f"raw-{number}"
            folder.mkdir()
            log.write_text("")
            (use,) = choose_tools(load_config(config | {"tools": {"npu": asked}}))["actor"]
            tool, window = Npu(), rlprof.Window(number, number + 1)
            printed = io.StringIO()
            with redirect_stdout(printed):
                tool.configure("process", use.options)
                recording = tool.start(window, target, folder)
                torch.ones(4).add(1)
                gc.collect()
                mstx.range_end(mstx.range_start("own", domain="mine"), "mine")
                tool.stop()
            (made,) = folder.glob("*_ascend_pt")
            taken = json.loads(next(made.glob("profiler_info*.json")).read_text())["config"]
            found = {
                "reached": log.read_text().splitlines(),
                "taken": taken["common_config"] | taken["experimental_config"],
                "files": sorted(path.name for path in made.glob("FRAMEWORK/*")),
                "notes": json.loads((folder / "npu.json").read_text()),
                "unsupported": recording.unsupported,
                "printed": printed.getvalue(),
            }
            lines.write(json.dumps(found) + "\n")


def beside(config):
    """Record while a profiler of training's own does."""
    torch = _torch()
    profiler = __import__("torch_npu").profiler
    handler = profiler.tensorboard_trace_handler(os.environ["OWN"], analyse_flag=False)
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities, on_trace_ready=handler) as own:
        train_with(torch, config)
        _work(torch, 10)
    print("own", Path(own.prof_if.prof_path, "FRAMEWORK/torch.op_range").stat().st_size)


def inside(config):
    """Begin a profiler of training's own in a window, and end it there."""
    torch = _torch()
    profiler = __import__("torch_npu").profiler
    with rlprof.open(config | {"steps": [1, 2]}, role="actor") as prof:
        for step in prof.steps(range(1, 3)):
            with prof.phase("update_actor"):
                if step == 1:
                    handler = profiler.tensorboard_trace_handler(
                        os.environ["OWN"], analyse_flag=False
                    )
                    with profiler.profile(on_trace_ready=handler):
                        _work(torch, 10)
                _work(torch, 10)


def forking(config):
    """Fork children that end by themselves: in two windows, and after them."""
    torch = _torch()
    with rlprof.open(config | {"steps": [1, 2]}, role="actor") as prof:
        for _ in prof.steps(range(1, 3)):
            with prof.phase("update_actor"):
                _work(torch, 10)
                _fork()
            _fork()


def _fork():
    child = os.fork()
    if child == 0:
        sys.exit(3)
    end, found = time.monotonic() + 30, (0, 0)
    while not found[0] and time.monotonic() < end:
        found = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05)
    if not found[0]:
        os.kill(child, signal.SIGKILL)
    print("child", found[0] and os.waitstatus_to_exitcode(found[1]), flush=True)


def dynamic(config):
    """Record while dynamic_profile waits for its turn."""
    from torch_npu.profiler import dynamic_profile

    Path(os.environ["OWN"]).mkdir()
    dynamic_profile.init(os.environ["OWN"])
    train_with(_torch(), config)


def train_with(torch, config):
    """Train for three steps."""
    with rlprof.open(config, role="actor") as prof:
        for _ in prof.steps(range(1, 4)):
            with prof.phase("update_actor"):
                _work(torch, 10)


def _torch():
    import torch
    import torch_npu  # noqa: F401 -- as training does

    return torch


def _work(torch, rounds):
    values = torch.ones(4)
    for _ in range(rounds):
        values = values + 1


if __name__ == "__main__":
    globals()[sys.argv[1]](json.loads(sys.argv[2]))
