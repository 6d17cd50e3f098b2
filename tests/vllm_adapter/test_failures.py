"""Whole sessions on engines that go wrong: what the manifest says, and that generation goes on."""

import asyncio
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from tests.engine_parts import lab
from tests.engine_parts.lab import (
    ANSWER,
    all_ended,
    notes,
    on_a_loop,
    serving,
    states,
    traces_of,
)
from tests.fakes.vllm_engines import EngineDeadError
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


class Lab(lab.Lab):
    engine, died = "vllm", EngineDeadError


@pytest.fixture(name="lab")
def _lab(tmp_path):
    return Lab(tmp_path)


# failures.md: vllm-traces
@pytest.mark.parametrize("gzipped", [False, True])
def test_a_trace_that_was_cut_takes_no_other_with_it(lab, traces, gzipped):
    """Of two workers one ran out of disk: its file is kept as it is, the other one is a trace."""
    launched = QUIET | {"torch_profiler_use_gzip": gzipped}
    handle = engine(NEW, directory=traces, tp=2, launched=launched)
    stop = handle._stop_profile

    def cut():
        stop()
        (file,) = traces.glob("*rank1.*.pt.trace.json*")
        file.write_bytes(file.read_bytes()[:20])

    handle._stop_profile = cut

    run = lab.train(handle, steps=(1,))

    assert states(run) == ["partial"]
    found = sorted((one.kind, one.status) for one in traces_of(run, 0))
    assert found == [("files", "partial"), ("trace", "whole")]
    assert "cannot be read" in " ".join(one.note for one in traces_of(run, 0))
    assert "1 of 2 workers left no trace" in notes(run, 0)


# failures.md: vllm-traces
def test_a_folder_that_cannot_be_made_is_told(lab, traces):
    """Start and stop succeed and nothing is written: vLLM says so in a worker's log alone."""
    traces.parent.joinpath("file").touch()
    nowhere = traces.parent / "file" / "traces"
    handle = engine(NEW, directory=nowhere, launched=QUIET)

    run = lab.train(handle)

    assert states(run) == ["partial"] * 3
    assert f"1 of 1 workers left no trace in {nowhere}" in notes(run, 0)
    assert lab.answers == [ANSWER] * 3


# failures.md: vllm-native
def test_what_is_known_of_nothing_is_not_asked_for(lab, handle):
    """A handle that takes any arguments gets no keyword; what it wrote stays where it is."""
    start = lambda *args, **kwargs: handle.start_profile(*args, **kwargs)  # noqa: E731, PLW0108
    stop = lambda: handle.stop_profile()  # noqa: E731, PLW0108 -- no coroutine, but awaited
    opaque = SimpleNamespace(generate=handle.generate, start_profile=start, stop_profile=stop)

    run = lab.train(opaque, steps=(1,), iterations={"count": 2})

    assert handle.called("start_profile") == [
        {"profile_prefix": None, "delay_iterations": None, "max_iterations": None}
    ]
    assert states(run) == ["partial"]
    assert "does not say what it was launched with" in run.captures[0].unsupported["iterations"]


# failures.md: vllm-refused
def test_a_call_that_was_refused_is_not_stopped(lab, handle):
    """The engine was never asked; until 0.29 a stop without a start could crash this process."""
    why = "start_profile() got an unexpected keyword argument 'max_iterations'"
    handle.raises["start_profile"] = TypeError(why)

    run = lab.train(handle, inside=lambda _: None)

    assert states(run) == ["failed"] * 3
    assert why in notes(run, 0)
    assert handle.called("stop_profile") == []
    assert lab.answers == [ANSWER] * 6


# failures.md: engine-gone
def test_an_engine_that_dies_while_it_is_asked_is_called_dead(lab, handle):
    """The error of that call names no cause."""

    def asked():
        handle.die()
        raise EngineDeadError("EngineCore encountered an issue")

    handle._is_sleeping = asked

    run = lab.train(handle, steps=(1,))

    assert states(run) == ["failed"]
    assert "the engine is dead" in notes(run, 0)


# failures.md: vllm-profiled
def test_somebody_else_ended_and_began_anew(lab, handle, traces):
    """Files that are not of the window's own session are left in the engine's folder."""

    def begin_anew(_):
        handle.profiler.stop()
        handle.profiler.start("theirs")

    run = lab.train(handle, inside=begin_anew, steps=(1,))

    assert states(run) == ["whole"]
    assert {file.name.partition("_")[0] for file in traces.iterdir()} == {"theirs"}


# failures.md: vllm-refused, vllm-profiled
@pytest.mark.parametrize(
    ("hook", "expected"),
    [("start_profile", ["failed", "whole"]), ("stop_profile", ["partial", "failed"])],
)
def test_an_engine_that_raises_spoils_its_own_window(lab, handle, hook, expected):
    """It is stopped, as it may have begun; one that goes on is somebody's to the next window."""

    def before(step):
        failure = RuntimeError("Call to profile method failed")
        handle.raises = {hook: failure} if step == 1 else {}

    run = lab.train(handle, before=before, steps=(1, 2))

    assert states(run) == expected
    assert f"{hook}: RuntimeError: Call to profile method failed" in notes(run, 0)
    assert ("somebody else is profiling" in notes(run, 1)) is (hook == "stop_profile")
    assert lab.answers == [ANSWER] * 2
    assert len(handle.called("stop_profile")) == (2 if hook == "start_profile" else 1)


# failures.md: vllm-cut
@pytest.mark.parametrize("kind", ["AsyncLLM", "LLM"])
def test_a_stop_under_load_is_not_waited_for(lab, traces, kind):
    """The step goes on after its time; the stop is never cut short, and what it wrote is had."""
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


# failures.md: vllm-asleep
@pytest.mark.parametrize("kind", ["AsyncLLM", "LLM"])
def test_a_sleeping_engine_is_left_alone(lab, traces, kind):
    """A window is a phase of generation; awake again, it is recorded."""
    handle = engine(NEW, kind, directory=traces, launched=QUIET)

    def before(step):
        handle.is_asleep = step == 1

    run = lab.train(handle, before=before, steps=(1, 2))

    assert states(run) == ["failed", "whole"]
    assert "the engine is asleep" in notes(run, 0)
    assert len(handle.called("start_profile")) == 1


@pytest.fixture(name="started_on")
def _started_on(handle):
    """Return the loops that start a profile of the engine."""
    loops = []

    def look(**given):
        loops.append(asyncio.get_running_loop())
        type(handle)._start_profile(handle, **given)

    handle._start_profile = look
    return loops


# failures.md: vllm-loop
def test_an_engine_on_a_loop_of_its_own_is_called_there(lab, handle, started_on):
    """An AsyncLLM belongs to the loop its output handler runs on."""
    with on_a_loop() as loop:
        handle.output_handler = asyncio.run_coroutine_threadsafe(_task(), loop).result()
        run = lab.train(handle, steps=(1,))

    assert states(run) == ["whole"]
    assert started_on == [loop]


async def _task():
    return asyncio.create_task(asyncio.sleep(600))


# failures.md: vllm-loop
@pytest.mark.parametrize("is_given", [False, True])
def test_an_engine_that_lives_on_no_loop_yet_is_not_tied_to_ours(lab, handle, started_on, is_given):
    """Whoever asks an AsyncLLM first gives it its loop for ever; ours ends with the question."""
    handle.output_handler = None

    async def asked():
        handle.output_handler = handle.output_handler or await _task()

    async def main():
        home = asyncio.get_running_loop()
        loop = home if is_given else None
        run = await lab.train_on_a_loop(handle, steps=(1, 2), loop=loop, after=asked)
        await all_ended()
        return run, home

    run, home = asyncio.run(main())

    assert states(run) == ["whole" if is_given else "failed", "whole"]
    assert set(started_on) == {home}
    assert is_given or "has no event loop yet" in notes(run, 0)


# failures.md: vllm-loop
def test_requests_are_watched_from_the_engines_own_loop(lab, handle):
    """A request that came in between, on another thread, would never be answered."""
    threads = []

    class Processor:
        """Notes where its requests are put in another place."""

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


START = {"post": {"requestBody": {"content": {}}}}
ROUTES = {"/start_profile": START, "/stop_profile": {"post": {}}, "/is_sleeping": {"get": {}}}
GOT = {
    "/openapi.json": {"paths": ROUTES},
    "/is_sleeping": {"is_sleeping": False},
    "/version": {"version": "0.32.0"},
}
REFUSALS = {
    404: "it was launched without a profiler",
    409: "somebody else is profiling",
    500: 'answered 500: "not so"',
}


# failures.md: vllm-profiled
@pytest.mark.parametrize("code", REFUSALS)
def test_a_server_that_refuses_is_not_asked_to_stop(lab, code):
    """Nothing of ours has begun: a stop would end somebody else's session. After a 500 it may."""

    def answers(path, _):
        return (code, "not so") if path == "/start_profile" else (200, GOT.get(path, {}))

    with serving(answers) as server:
        run = lab.train(server.address, steps=(1,), profiler_dir=str(lab.traces))

    assert states(run) == ["failed"]
    assert REFUSALS[code] in notes(run, 0)
    asked = ["/start_profile", "/stop_profile"][: 2 if code == 500 else 1]
    assert [path for path, _ in server.posted] == asked


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
def test_a_server_that_never_answers_does_not_hold_up_the_end_of_the_process(tmp_path):
    """The process ends while a question to the server is still open."""
    done = subprocess.run([sys.executable, "-c", SILENT, str(tmp_path)], timeout=60, check=False)

    assert done.returncode == 0
