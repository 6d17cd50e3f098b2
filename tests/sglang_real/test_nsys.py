"""The tool `nsys` inside real SGLang: a program under nsys, whose schedulers are its children."""

import pytest

import rlprof
from tests.real_engines import opened, shares_a_report
from tests.real_nsys import ranges_of, real_nsys
from tests.sglang_real.conftest import captures, traces

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    options = {"nsys": real_nsys(), "trace": ["nvtx"]}
    role = {"engine": "sglang", "ranks": "all"}
    config = {
        "tool": "nsys", "steps": [1], "roles": {"rollout": role}, "tools": {"nsys": options},
    }  # fmt: skip
    launch = rlprof.launch(config, role="rollout", ranks=[0, 1])
    return drive("under_nsys", prefix=launch.argv_prefix, options=options)


@pytest.mark.parametrize("step", [1, 2])
def test_every_scheduler_has_a_trace_of_its_own_steps_and_one_has_the_report(driven, step):
    """Each scheduler's trace has only its own steps; one has the report, which the other names."""
    run = driven.run("nsys")
    (ran,) = [one["ran"] for one in driven.of("nsys") if one.get("step") == step]

    found = captures(run, "nsys", f"{step}/rollout")
    made = [opened(file) for file in traces(run, "nsys", f"{step}/rollout")]

    assert [(capture.state, dict(capture.unsupported)) for capture in found] == [("whole", {})] * 2
    assert [len(ranges_of(trace)) for trace in made] == [ran, ran]
    for trace in made:
        assert {event["pid"] for event in ranges_of(trace)} == {trace["rlprof"]["pid"]}
    assert shares_a_report(found)
