"""Whole sessions on faulty engines: the manifest names the fault, and generation continues."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from tests.engine_parts.lab import ANSWER, Lab, all_ended, notes, states, traces_of
from tests.vllm_adapter.generations import engine
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

NEW = "vllm==0.32.0"
QUIET = {"ignore_frontend": True}
"""Launched without the frontend's profiler, as by rlprof.launch."""


@pytest.fixture(name="traces")
def _traces(tmp_path, monkeypatch):
    """Return the folder of vLLM's own profiler."""
    for name in [name for name in os.environ if name.startswith("VLLM_")]:
        monkeypatch.delenv(name)
    return tmp_path / "traces"


@pytest.fixture(name="handle")
def _handle(traces):
    return engine(NEW, directory=traces, launched=QUIET)


@pytest.fixture(name="lab")
def _lab(tmp_path):
    return Lab(tmp_path, "vllm")


# failures.md: vllm-cut
@pytest.mark.parametrize("kind", ["AsyncLLM", "LLM"])
def test_a_stop_under_load_is_not_waited_for(lab, traces, kind):
    """A step continues after the timeout of a slow stop, whose trace is collected later."""
    handle = engine(NEW, kind, directory=traces, launched=QUIET)
    gate = handle.gates["stop_profile"] = threading.Event()

    def before(step):
        if step == 3:
            gate.set()
            wait_until(lambda: list(lab.run_dir.rglob("*.pt.trace.json.gz")))

    run = lab.train(handle, before=before, limits={"stop_timeout_s": 0.2})

    assert states(run) == ["partial", "failed", "failed"]
    assert len(traces_of(run, 0)) == 1
    assert "stop was not answered within stop_timeout_s 0.2" in notes(run, 0)
    assert "not started" in notes(run, 1)
    assert lab.answers == [ANSWER] * 3
    assert len(handle.called("stop_profile")) == 1


async def _task():
    return asyncio.create_task(asyncio.sleep(600))


# failures.md: vllm-loop
@pytest.mark.parametrize("is_given", [False, True])
def test_an_engine_without_a_loop_is_not_bound_to_rlprofs_loop(lab, handle, is_given):
    """An AsyncLLM that has had no call is recorded only if its loop is given."""
    handle.output_handler, loops = None, []

    def look(**given):
        loops.append(asyncio.get_running_loop())
        type(handle)._start_profile(handle, **given)

    async def asked():
        handle.output_handler = handle.output_handler or await _task()

    async def main():
        home = asyncio.get_running_loop()
        loop = home if is_given else None
        run = await lab.train_on_a_loop(handle, steps=(1, 2), loop=loop, after=asked)
        await all_ended()
        return run, home

    handle._start_profile = look
    run, home = asyncio.run(main())

    assert states(run) == ["whole" if is_given else "failed", "whole"]
    assert set(loops) == {home}
    assert is_given or "has no event loop yet" in notes(run, 0)


# failures.md: vllm-loop
def test_requests_are_watched_from_the_engines_own_loop(lab, handle):
    """The frontend's requests are replaced and restored on the thread of the engine's loop."""
    threads = []

    class Processor:
        """Notes the threads on which its attributes are set."""

        def __setattr__(self, name, value):
            threads.append(threading.current_thread())
            super().__setattr__(name, value)

    handle.output_processor = handle._processor = Processor()
    handle.output_processor.request_states = {}
    threads.clear()

    async def main():
        handle.output_handler = await _task()
        await lab.train_on_a_loop(handle)
        await all_ended()

    asyncio.run(main())

    assert threads == [threading.current_thread()] * 2  # and put back when the window ended
    assert type(handle.output_processor.request_states) is dict


SILENT = """
import socket, sys, rlprof
silent = socket.create_server(("127.0.0.1", 0))
limits = {"configure_timeout_s": 1, "start_timeout_s": 1, "stop_timeout_s": 1}
config = {"run_dir": sys.argv[1], "scratch_dir": sys.argv[1], "steps": [1], "limits": limits,
          "roles": {"rollout": {"engine": "vllm", "phases": ["rollout"], "tool": []}}}
with rlprof.open(config, role="trainer") as prof:
    prof.attach(f"http://127.0.0.1:{silent.getsockname()[1]}", role="rollout")
"""


# failures.md: engine-gone
def test_a_silent_server_does_not_hold_up_the_end_of_the_process(tmp_path):
    """A process ends while its request to a silent server is still open."""
    done = subprocess.run([sys.executable, "-c", SILENT, str(tmp_path)], timeout=60, check=False)

    assert done.returncode == 0
