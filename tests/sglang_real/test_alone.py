"""A real engine with one scheduler: windows by both ways, and faults."""

import pytest

from tests.real_engines import KNOWN, counters_of, opened
from tests.sglang_real.conftest import captures, requests, steps, traces
from tests.sglang_real.drivers.alone import ASKED, DEADLY
from tests.sglang_real.sessions import SIX

pytestmark = pytest.mark.slow
TOOL = {"worker": "torch", "native": "sglang"}
WAYS = list(TOOL)


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    return drive("alone")


def ran(driven, session, step):
    """Return how many steps the framework counted in a window."""
    return next(one["ran"] for one in driven.of(session) if one.get("step") == step)


# failures.md: sglang-cut
@pytest.mark.parametrize("step", SIX)
@pytest.mark.parametrize("way", WAYS)
def test_six_windows_have_exactly_the_steps_asked_for(driven, way, step):
    """Each of six windows skips 3 steps and records 5, and the engine's folder ends up empty."""
    run = driven.run(f"{way} six")

    (file,) = traces(run, TOOL[way], f"{step}/rollout")
    (capture,) = captures(run, TOOL[way], f"{step}/rollout")

    assert ran(driven, f"{way} six", step) > 3 + 5
    assert len(steps(file)) == 5
    assert all(name.startswith("step[DECODE") for name in steps(file))
    assert capture.state == "whole"
    assert f"step_{step:06d}/rollout/rollout_replica_0/{TOOL[way]}" in str(file)
    assert len(list(run.path.rglob("*.pt.trace.json.gz"))) == 6
    assert list(driven.home.glob("rlprof-sglang-*/*/*")) == []
    assert run.problems == ()
    assert {one.state for one in run.processes} == {"ended"}


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_trace_has_the_forward_steps_and_the_target_of_its_window(driven, way, step):
    """A trace has all forward steps of its window but one at most, and they lie in the phase."""
    run = driven.run(f"{way} whole")
    phases = {one.step: one for one in run.spans() if one.kind == "phase" and one.name == "rollout"}

    (file,) = traces(run, TOOL[way], f"{step}/rollout")
    found = opened(file)
    header = found["rlprof"]
    times = sorted(
        header["epoch_ns"] + int(one["ts"] * 1000)
        for one in found["traceEvents"]
        if one.get("ph") == "X" and one["name"].startswith("step[")
    )

    assert ran(driven, f"{way} whole", step) - len(times) in (0, 1)
    assert phases[step].start_ns < times[0] <= times[-1] < phases[step].end_ns
    assert (header["target"]["role"], header["target"]["replica"]) == ("rollout", 0)
    assert header["target"]["coordinates"]["tp"] == 0
    assert header["window"]["start_step"] == step
    pids = {one["pid"] for one in driven.framework if one["title"] == "sglang::scheduler"}
    assert any(f"pid{pid}" in file.name for pid in pids)


# failures.md: sglang-harm
def test_stages_are_apart(driven):
    """A window by stage leaves a trace of the prefill, and one of two steps of decode."""
    run = driven.run("stages")

    for step in (1, 2):
        decode, prefill = traces(run, "sglang", f"{step}/rollout")
        assert ("_decode_" in decode.name, "_prefill_" in prefill.name) == (True, True)
        assert [name[:11] for name in steps(decode)] == ["step[DECODE"] * 2
        assert {name[:11] for name in steps(prefill)} == {"step[EXTEND"}


@pytest.mark.parametrize("row", ASKED)
def test_options_reach_sglangs_own_profiler(driven, row):
    """Stacks, shapes and counts of steps are in the trace exactly where they were asked for."""
    run = driven.run(f"asked {row}")
    (capture,) = run.captures
    files = traces(run, "sglang", "1/rollout")
    names = [name for file in files for name in steps(file)]
    events = [one for file in files for one in opened(file)["traceEvents"]]

    assert capture.state == "whole"
    assert ("activities: GPU" in capture.unsupported) == (row == "cuda")
    assert len(files) == 1
    if row == "one step":
        assert len(names) == 1
    elif row == "stack":
        assert len(names) == 10
    else:
        assert len(names) > 10
    assert any(one.get("cat") == "python_function" for one in events) == (row == "stack")
    assert any("Input Dims" in one.get("args", {}) for one in events) == (row == "shapes")


def test_any_tool_records_inside_the_scheduler(driven):
    """A third-party tool records inside the scheduler; one that needs CUDA fails alone."""
    run = driven.run("any tool")

    found = {one.tool: one for one in run.captures}

    assert (found["stacks"].state, found["stacks"].target.worker) == ("whole", 0)
    assert found["torch_memory"].state == "failed"
    assert any("CUDA" in note for note in found["torch_memory"].notes)
    assert driven.of("any tool")[1]["tokens"] == [14, 5]
    assert {one.state for one in run.processes} == {"ended"}


# failures.md: sglang-harm, sglang-profiled
@pytest.mark.parametrize(
    ("session", "why"),
    [("refused below a file", "Not a directory"),
     ("refused memory", "MEM cannot be recorded on cpu"),
     ("busy", "somebody else is profiling")],
)  # fmt: skip
def test_a_window_that_would_do_harm_is_refused(driven, session, why):
    """The capture fails with the reason, tokens come, and another user's session has its file."""
    (capture,) = driven.run(session).captures

    assert capture.state == "failed"
    assert any(why in note for note in capture.notes)
    assert driven.of(session)[1]["tokens"] == [4]
    assert session != "busy" or len(driven.of(session)[-1]["theirs"]) == 1


# failures.md: sglang-harm
@pytest.mark.parametrize("name", DEADLY)
def test_deadly_requests_do_not_end_an_engine_with_rlprof_inside(driven, name):
    """A deadly request of another user is answered, tokens come, and the engine records again."""
    (told,) = [one for one in driven.of("deadly") if one["name"] == name and "said" in one]
    (file,) = traces(driven.run("after all"), "sglang", "1/rollout")

    assert told["tokens"] == [4, 3]
    assert told["said"].startswith(("started", "rlprof: ", "SGLang's profiler: "))
    assert len(steps(file)) == 2


# failures.md: sglang-cut
def test_a_window_ends_where_weights_come(driven):
    """A weight update ends the window after the steps so far, and the capture notes the reason."""
    run = driven.run("weights")

    (capture,) = captures(run, TOOL["worker"], "1/rollout")
    (file,) = traces(run, TOOL["worker"], "1/rollout")

    assert driven.of("weights")[-1]["tokens"] == [6, 9]
    assert len(steps(file)) in (6, 7)
    why = "closed early: the engine was asked to update weight from disk"
    assert any(why in note for note in capture.notes)


def test_counters_show_the_load_of_the_engine(driven):
    """Counters show three requests at a time, with no tool and no window."""
    found = counters_of(driven.run("counted"))

    busiest = max(found, key=lambda values: values["requests_running"])
    assert set(busiest) == KNOWN
    assert {busiest[name] for name in KNOWN - {"kv_cache_use", "requests_waiting"}} == {3}
    assert 0 < busiest["kv_cache_use"] < 1


def test_windows_end_while_requests_go_on(driven):
    """Requests that outlive a window get all their tokens and are listed without an end."""
    whole, _ = requests(driven.run("in flight"), "1/rollout")

    assert driven.of("in flight")[-1]["tokens"] == [150, 150]
    assert {name: one["args"].get("finish") for name, one in whole.items()} == {
        "request short-0": "length",
        "request lost": "abort",
        "request long-0": None,
        "request long-1": None,
    }
    assert {name for name, one in whole.items() if "unfinished" in one["args"]} == {
        "request long-0",
        "request long-1",
    }


def test_a_request_has_its_life_in_slices(driven):
    """A request has its tokens, and queued, prefill and decode slices one after another."""
    whole, slices = requests(driven.run("worker whole"), "1/rollout")

    first = whole["request worker whole-1-0"]
    parts = [one for one in slices if one["tid"] == first["tid"] and one is not first][:3]
    assert (first["args"]["prompt_tokens"], first["args"]["tokens"]) == (3, 14)
    assert first["args"]["retractions"] == 0
    assert [one["name"] for one in parts] == ["queued", "prefill", "decode"]
    ends = [one["ts"] + one["dur"] for one in parts]
    assert [one["ts"] for one in parts[1:]] == pytest.approx(ends[:-1], abs=0.01)
    assert first["dur"] == pytest.approx(sum(one["dur"] for one in parts), abs=0.01)
