"""Training's own torch profilers record as without rlprof; each test has a process, to crash in."""

import pytest

import rlprof
from tests.cases import cases
from tests.torch_profiler.test_torch import _config, named, run, strict  # noqa: F401 -- a fixture

pytestmark = pytest.mark.slow
THREAD = "one = threading.Thread(target=record); one.start(); one.join()"
TRAIN = """
import functools, sys, threading, torch, rlprof
def work(): torch.mul(torch.ones(2), 3)
own = functools.partial(torch.profiler.profile, activities=[torch.profiler.ProfilerActivity.CPU])
def show(one): print(sorted(e.name for e in one.events() if "aten" in e.name), flush=True)
def record():
    with own(on_trace_ready=show): work()
def train(inside=None, after=lambda: None):
    with rlprof.open({config!r} if sys.argv[1] == "on" else None) as prof:
        for step in prof.steps(range(4)):
            with prof.phase("update_actor"):
                work()
                if step == 1 and inside: inside()
                work()
            after()
"""


def trained(tmp_path, config, body):
    off, on = (run(tmp_path, TRAIN.format(config=config) + body, mode) for mode in ("off", "on"))
    assert off.stdout == on.stdout
    assert ("mul" in off.stdout) is ("itt" not in body)
    (run_dir,) = (tmp_path / "runs").iterdir()
    for one in rlprof.read(run_dir).captures:
        traces = [strict(run_dir / artifact.path) for artifact in one.artifacts]
        yield "; ".join(one.notes), sum(len(named(trace, "aten::mul")) for trace in traces)


# failures.md: torch-own
@cases("wait, muls", (0, [0, 0, 2, 2]), (1, [2, 0, 0, 2]), ids=["before rlprof", "later"])
def test_no_window_opens_while_training_has_prepared_a_profiler(config, tmp_path, wait, muls):
    """Windows are refused exactly while training's own profiler warms up or records."""
    chosen = f"torch.profiler.schedule(wait={wait}, warmup=1, active=1, repeat=1)"
    body = f"with own(schedule={chosen}, on_trace_ready=show) as one: train(after=one.step)"
    notes = [(count, "torch profiler is active or prepared" in note)
             for note, count in trained(tmp_path, config(), body)]  # fmt: skip
    assert notes == [(count, count == 0) for count in muls]


# failures.md: torch-own
@cases(
    "inside, options, muls",
    ("record()", {}, [2, 1, 2, 2]),
    ("record()", {"schedule": {"active": 1, "skip_first": 9}}, [0, 0, 0, 0]),
    ("with torch.autograd.profiler.emit_itt(): work()", {"all_threads": False}, [2, 1, 2, 2]),
    (THREAD, {"all_threads": True}, [2, 1, 2, 2]),
)  # fmt: skip
def test_a_window_ends_as_training_starts_a_profiler(config, tmp_path, inside, options, muls):
    """The trace of the window ends where training's own profiler starts, and says so."""
    body = f"def inside():\n    {inside}\ntrain(inside)"
    notes, found = zip(*trained(tmp_path, config(options=options), body), strict=True)

    assert muls == list(found)
    assert "closed early: training started its own profiler" in notes[1]
