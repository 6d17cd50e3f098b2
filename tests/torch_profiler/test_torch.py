"""The tool `torch` on real torch: what it records, and every trap of torch.profiler."""

import gzip
import json
import os
import subprocess
import sys
import threading
import warnings

import pytest
import torch

import rlprof
from rlprof.testing import ToolTests
from rlprof_torch import Torch
from tests.cases import cases

pytestmark = pytest.mark.slow
RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))


class TestTorch(ToolTests):
    plugin = Torch
    # Before 2.13, torch cannot record again once a thread has ended with its own window open.
    options = {"contents": ["cpu", "shapes"]} | ({"all_threads": True} if RELEASE < (2, 13) else {})

    def work(self):
        torch.manual_seed(7)
        layer = torch.nn.Linear(8, 8)
        layer(torch.ones(4, 8)).square().sum().backward()
        return layer.weight.grad.tolist()


@pytest.fixture(name="config")
def _config(tmp_path):
    def make(**changes):
        options = changes.pop("options", {})
        return {
            "run_dir": str(tmp_path / "runs"), "scratch_dir": str(tmp_path / "scratch"),
            "tool": "torch", "steps": {"every": 1}, "roles": {"actor": {}},
            "tools": {"torch": options}, **changes,
        }  # fmt: skip

    return make


def strict(path):
    with gzip.open(path) as file:
        return json.load(file, parse_constant=pytest.fail)


def work():
    layer = torch.nn.Linear(8, 8)
    layer(torch.ones(4, 8)).sum().backward()


def record(config, body=work, **where):
    with rlprof.open(config, **where) as prof:
        prof.step(3)
        with prof.phase("update_actor"):
            body()
    (capture,) = rlprof.read(prof.run_dir).captures
    files = [prof.run_dir / artifact.path for artifact in capture.artifacts]
    return capture, [strict(file) for file in files], files


def named(trace, name):
    return [event for event in trace["traceEvents"] if event.get("name") == name]


def test_a_window_becomes_a_whole_trace(config):
    """A window becomes a trace of its operators and its phase; the file name identifies it."""
    where = {"rank": 0, "world_size": 2, "coordinates": {"tp": 0, "pp": 0}}
    capture, (trace,), (file,) = record(config(), **where)

    assert capture.state == "whole"
    assert named(trace, "aten::addmm")
    assert named(trace, "AddmmBackward0")
    assert [e["cat"] for e in named(trace, "update_actor")] == ["user_annotation"]
    assert capture.artifacts[0].events == len(trace["traceEvents"])
    assert capture.artifacts[0].size == file.stat().st_size
    stem = f"actor_rank0-of-2_tp0_pp0_step3_update_actor_pid{os.getpid()}"
    assert file.name == f"{stem}.pt.trace.json.gz"
    assert file.parent.parts[-4:] == ("step_000003", "update_actor", "actor_0_of_2", "torch")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU; none is here")
def test_kernels_and_copies_are_in_the_trace(config):
    """With empty contents a GPU is recorded: its kernels, copies and flows."""

    def body():
        x = torch.randn(512, 512).cuda()
        (x @ x).sum().item()

    capture, (trace,), _ = record(config(), body)

    assert (capture.state, capture.applied["device"]) == ("whole", "cuda")
    categories = {event.get("cat") for event in trace["traceEvents"]}
    assert {"kernel", "gpu_memcpy", "cuda_runtime", "ac2g"} <= categories


def test_a_gpu_in_contents_is_taken_for_cuda(config):
    """The error for `gpu` in contents suggests `cuda`, not `xpu`, which is spelled more alike."""
    with pytest.raises(rlprof.ConfigError, match="got 'gpu'; did you mean 'cuda'"):
        rlprof.open(config(options={"contents": ["gpu"]}))


def test_contents_arrive_in_the_trace(config):
    """Contents are in the trace exactly where they were asked for."""
    asked = {
        "shapes": lambda event: "Input Dims" in event.get("args", {}),
        "stack": lambda event: event.get("cat") == "python_function",
        "memory": lambda event: event.get("name") == "[memory]",
    }
    options = {"contents": ["cpu", "flops", "modules", *asked], "all_threads": True}
    capture, (trace,), _ = record(config(options=options))
    _, (plain,), _ = record(config(options={"contents": ["cpu"]}))

    def present(found):
        return {name for name, is_it in asked.items() if any(map(is_it, found["traceEvents"]))}

    assert present(trace) == {*asked}
    assert present(plain) == set()
    assert named(trace, "aten::addmm")
    assert capture.applied["all_threads"] is False
    assert capture.unsupported["all_threads"] == "torch records memory of one thread only"


# failures.md: torch-swap
@pytest.mark.parametrize("contents", ["shapes", "flops", "stack", ""])
def test_training_may_swap_tensors_in_a_window(config, contents):
    """A heavy window ends before a swap of tensors, which would raise; a light one continues."""
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(layer.parameters())
    own = torch.utils.swap_tensors

    def body():
        layer(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        assert (torch.utils.swap_tensors is own) is not bool(contents)
        torch.utils.swap_tensors(layer.weight, torch.nn.Parameter(torch.zeros(8, 8)))
        layer(torch.ones(4, 8))

    options = {"contents": ["cpu", *filter(None, [contents])]}
    capture, (trace,), _ = record(config(options=options), body)

    assert layer.weight.abs().sum() == 0
    assert torch.utils.swap_tensors is own
    assert capture.state == "whole"
    told = "closed early: training swapped tensors (contents: shapes, flops, stack)"
    assert [one.note for one in capture.artifacts] == [told if contents else ""]
    assert len(named(trace, "aten::addmm")) == (1 if contents else 2)


def test_a_device_that_is_not_there_is_unsupported(config):
    """On a machine without CUDA `cuda` is unsupported, and the CPU is recorded."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here, so cuda is not absent")

    capture, (trace,), _ = record(config(options={"contents": ["cpu", "cuda"]}))

    assert capture.unsupported == {"cuda": "torch sees no cuda device here"}
    assert named(trace, "aten::addmm")


@cases("asked, release, warned",
       (True, "2.13.0+cpu", True), (None, "2.13.0", False), (True, "2.14.0", False))  # fmt: skip
def test_you_are_warned_where_all_threads_may_crash(monkeypatch, asked, release, warned):
    """`all_threads: true` with a torch that may crash is a caution of `rlprof check`."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: release)
    assert len(Torch.advise(Torch.Options(all_threads=asked))) == warned


@cases("asked, all_threads", (True, True), (False, False), (None, RELEASE >= (2, 14)), ids=str)
def test_other_threads_are_recorded_or_kept_out(config, asked, all_threads):
    """Threads from before and inside the window are recorded if asked for, or where it is safe."""
    go, done = threading.Event(), threading.Event()

    def early():
        go.wait(10)
        with torch.profiler.record_function("in an early thread"):
            torch.ones(2)
        done.set()

    thread = threading.Thread(target=early)
    thread.start()

    def body():
        go.set()
        done.wait(10)
        late = threading.Thread(target=lambda: torch.mul(torch.ones(2), 3))
        late.start()
        late.join()
        torch.add(torch.ones(2), 1)

    capture, (trace,), _ = record(config(options={"all_threads": asked}), body)
    thread.join()

    assert capture.applied["all_threads"] is all_threads
    assert bool(named(trace, "in an early thread")) is all_threads
    assert bool(named(trace, "aten::mul")) is all_threads
    assert named(trace, "aten::add")


@cases(
    "schedule, batches, parts",
    ({"active": 2, "skip_first": 1}, 6, ["_mb2-3"]),
    ({"active": 1, "wait": 1, "repeat": 0}, 5, ["_mb2-2", "_mb4-4"]),
    ({"active": 5, "warmup": 1}, 3, ["_mb2-3"]),
    ids=["skip", "repeat", "warmup, cut short"],
)
def test_chosen_minibatches_become_traces(config, schedule, batches, parts):
    """The inner schedule records the mini-batches it names, and the file names say which."""

    def train():
        for number in range(1, batches + 1):
            with torch.profiler.record_function(f"batch {number}"):
                torch.ones(2)
            rlprof.session._current.session.minibatch()

    capture, traces, files = record(config(options={"schedule": schedule}), train)

    assert capture.state == "whole"
    suffixes = [file.name.partition(f"pid{os.getpid()}")[2].partition(".")[0] for file in files]
    assert parts == suffixes
    for part, trace in zip(parts, traces, strict=True):
        first, last = map(int, part.removeprefix("_mb").split("-"))
        wanted = {f"batch {number}" for number in range(first, min(last, batches) + 1)}
        seen = {e["name"] for e in trace["traceEvents"] if e.get("name", "").startswith("batch")}
        assert wanted == seen
        assert trace["rlprof"]["error_ns"] is not None


def test_a_warning_of_torch_ends_no_window_where_warnings_are_errors(config, monkeypatch):
    """With warnings as errors, torch's warning about lost cycles ends no window."""
    start = torch.profiler.profile.start

    def warning(profile):
        warnings.warn("Warning: Profiler clears events at the end of each cycle.", stacklevel=1)
        start(profile)

    monkeypatch.setattr(torch.profiler.profile, "start", warning)

    assert record(config())[0].state == "whole"


def test_a_window_that_ends_before_it_records_fails(config):
    """A window that ends before its schedule records fails with the reason."""
    capture, traces, _ = record(config(options={"schedule": {"active": 1, "skip_first": 9}}))

    assert (capture.state, traces) == ("failed", [])
    assert "the window ended in mini-batch 1, nothing was recorded by then" in capture.notes[0]


def test_asyncio_phases_do_not_break_the_trace(config):
    """Phases of tasks that overlap on one thread leave a whole trace."""
    import asyncio

    async def request(prof, number):
        async with prof.phase(f"request {number}"):
            torch.ones(2)
            await asyncio.sleep(0.001 * number)
            torch.ones(2)

    async def main(prof):
        async with prof.phase("rollout"):
            await asyncio.gather(*(request(prof, number) for number in range(5)))

    with rlprof.open(config()) as prof:
        prof.step(1)
        asyncio.run(main(prof))

    (capture,) = rlprof.read(prof.run_dir).captures
    trace = strict(prof.run_dir / capture.artifacts[0].path)
    assert capture.state == "whole"
    assert all(named(trace, f"request {number}") for number in range(5))


def test_memory_is_given_back(tmp_path):
    """The stop of a window drops its events, so that their memory is freed."""
    tool = Torch()
    tool.configure(place="process", options=tool.options)
    profile = tool.start(folder=tmp_path)._profile
    work()
    tool.stop()

    assert profile.profiler.kineto_results is None


TRAIN = """
import hashlib, sys, torch, rlprof
prof = rlprof.open({config!r} if sys.argv[1] == "on" else None)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in prof.steps(range(6)):
    with prof.phase("update_actor"):
        optimizer.zero_grad()
        model(torch.randn(32, 8)).square().mean().backward()
        optimizer.step()
        prof.minibatch()
prof.close()
data = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(hashlib.sha256(data).hexdigest(), torch.randn(1).item())
"""


def run(tmp_path, source, *args):
    file = tmp_path / "train.py"
    file.write_text(source)
    env = {name: value for name, value in os.environ.items() if name != "KINETO_LOG_LEVEL"}
    argv = [sys.executable, file, *args]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def test_training_is_bit_equal(config, tmp_path):
    """Seeded training ends with the same bits under heavy profiling, and Kineto prints nothing."""
    options = {"contents": ["memory", "shapes", "stack", "flops"]}
    source = TRAIN.format(config=config(options=options))

    off, on = (run(tmp_path, source, mode) for mode in ("off", "on"))

    assert off.stdout == on.stdout
    assert len(off.stdout) > 64
    assert ".cpp:" not in on.stderr  # Kineto's own lines about each window


def test_a_profiler_that_breaks_half_way_is_not_stopped_twice(config, monkeypatch):
    """After an error in torch's step the profiler is not stopped twice, which would crash."""
    legacy = torch.autograd.profiler
    original = legacy.profile
    schedule = {"active": 1, "repeat": 0}

    def train():
        current = rlprof.session._current.session
        torch.ones(2)

        def fail(*args, **kwargs):
            raise RuntimeError("half way")

        monkeypatch.setattr(legacy, "profile", fail)
        current.minibatch()
        monkeypatch.setattr(legacy, "profile", original)
        torch.ones(2)

    capture, (trace,), _ = record(config(options={"schedule": schedule}), train)

    assert capture.state == "partial"
    assert "minibatch: RuntimeError: half way" in capture.notes[0]
    assert named(trace, "aten::ones")


SOAK = """
import sys, threading, torch, rlprof
config = {config!r}
layer = torch.nn.Linear(8, 8)
prof = rlprof.open(config)
prof.scribe.export = lambda job: prof.scribe.discard(job.folder)  # recording, not exporting
for step in prof.steps(range(150)):
    outlives = prof.phase("outlives its step")
    outlives.__enter__()
    with prof.phase("update_actor"):
        for number in range(5):
            layer(torch.ones(4, 8)).sum().backward()
            prof.minibatch()
    if step % 2:
        outlives.__exit__(None, None, None)
prof.close()
"""


@cases(
    "mode, options",
    ("discrete", {}),
    ("continuous", {"all_threads": False}),
    ("continuous", {"schedule": {"active": 1, "warmup": 1, "repeat": 0}}),
    ids=["all threads", "one thread", "with warm-up"],
)
def test_hundreds_of_windows_do_not_crash(config, tmp_path, mode, options):
    """A run of 150 steps with phases that outlive them does not crash, as bare torch may."""
    run(tmp_path, SOAK.format(config=config(mode=mode, options=options)))
