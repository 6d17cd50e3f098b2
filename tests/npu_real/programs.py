"""Programs on the real torch_npu, each run in a process of its own: PROGRAM CONFIG."""

import json
import os
import signal
import sys
import threading
import time

import rlprof

OPERATORS = 2000


def train(config):
    """Train for three steps; phases nest, and the recorded step lasts until kernels fit in."""
    torch = _torch()
    with rlprof.open(config, role="actor") as prof:
        for step in prof.steps(range(1, 4)):
            with prof.phase("update_actor"), prof.phase('inner "phase"'):
                began = time.time_ns()
                values = torch.ones(4)
                for _ in range(OPERATORS):
                    values = values + 1
                print("worked", began, time.time_ns(), flush=True)
                time.sleep(0.5 * (step == 2))  # the stand-in for msprof puts its kernels there


def misuse(config):
    """Train in seeded steps; fork in a window, and end it on another thread than it began on."""
    torch = _torch()
    torch.manual_seed(7)
    layer = torch.nn.Linear(8, 8)
    with rlprof.open(config, role="actor") as prof:
        for step in range(1, 4):
            prof.step(step)
            phase = prof.phase("update_actor")
            _aside(phase.__enter__) if step == 2 else phase.__enter__()
            layer(torch.rand(4, 8)).square().sum().backward()
            _fork()
            phase.__exit__(None, None, None)
        _fork()
    print("trained", layer.weight.grad.flatten().tolist(), flush=True)
    print("followed", sys.getprofile(), flush=True)


def _aside(call):
    one = threading.Thread(target=call)
    one.start()
    one.join()


def _fork():
    """Fork a child that exits by itself, and print its status; a child that hangs is killed.

    A child that is forked while torch_npu has tasks in its queue waits for them at its exit: the
    thread that does them stays with the parent.
    """
    _torch().npu.synchronize()
    child = os.fork()
    if child == 0:
        sys.exit(3)
    end, found = time.monotonic() + 30, (0, 0)
    while not found[0] and time.monotonic() < end:
        found = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not found[0]:
        os.kill(child, signal.SIGKILL)
    print("child", found[0] and os.waitstatus_to_exitcode(found[1]), flush=True)


def _torch():
    import torch
    import torch_npu  # noqa: F401 -- as training does

    return torch


if __name__ == "__main__":
    globals()[sys.argv[1]](json.loads(sys.argv[2]))
