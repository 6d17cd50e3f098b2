"""The tool `nsys` inside real vLLM: a program under nsys, whose workers are its children."""

import pytest

import rlprof
from tests.real_engines import shares_a_report
from tests.real_nsys import ranges_of, real_nsys
from tests.vllm_real.conftest import trace, traces_of
from tests.vllm_real.test_several import SIZES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="driven")
def _driven(drive):
    sizes, env = SIZES["tp"]
    options = {"nsys": real_nsys(), "trace": ["nvtx"]}
    role = {"engine": "vllm", "ranks": "all"}
    config = {
        "tool": "nsys", "steps": [1], "roles": {"rollout": role}, "tools": {"nsys": options},
    }  # fmt: skip
    launch = rlprof.launch(config, role="rollout")
    return drive("under_nsys", prefix=launch.argv_prefix, env=env, sizes=sizes, options=options)


@pytest.mark.parametrize("step", [1, 2])
def test_every_worker_has_a_trace_of_its_own_steps_and_one_has_the_report(driven, step):
    """Each worker's trace has only its own steps; one has the report, which the other names."""
    run = driven.run("nsys")
    (ran,) = [one["ran"] for one in driven.of("nsys") if one.get("step") == step]

    found = traces_of(run, "nsys", f"{step}/rollout")

    assert sorted(capture.target.worker for capture, _ in found) == [0, 1]
    for capture, artifact in found:
        made = trace(run, artifact)
        assert (capture.state, dict(capture.unsupported)) == ("whole", {})
        assert len(ranges_of(made)) == ran[capture.target.worker]
        processes = {event["pid"] for event in ranges_of(made)}
        assert processes == {made["rlprof"]["pid"]}
    both = [c for c in run.captures if (c.tool, c.window.start_step) == ("nsys", step)]
    assert shares_a_report(both)
