"""Options of the engine `sglang`: those accepted, refused, or reported as unsupported."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_engine.iterations import Iterations
from rlprof_sglang import SglangOptions
from rlprof_sglang._facts import Facts
from rlprof_sglang._request import Request
from rlprof_sglang._sglang import _unasked, _way
from rlprof_sglang._words import SWITCH
from tests.cases import cases

STACKS = ("iterations: needs {count: N}, because tools.torch.contents has stack: an idle "
          "scheduler writes up to two million events a second")  # fmt: skip
DIES = ("by_stage needs iterations: {count: N}, the steps of each stage; without it SGLang's "
        "scheduler dies at its next prefill")  # fmt: skip
UNKNOWN = "'gpu' is not one of CPU, GPU, XPU, MEM, CUDA_PROFILER"
EMPTY = "is empty, and SGLang would record nothing; leave it out for CPU and GPU"
INSIDE = "by_stage: SGLang's own profiler does that; leave out way: worker"
BY_STAGE = {"by_stage": True, "iterations": {"count": 2}}


@cases(
    "options, contents, why",
    ({"activities": ["CPU", "gpu"]}, [], UNKNOWN),
    ({"activities": []}, [], EMPTY),
    ({"by_stage": True}, [], DIES),
    ({"way": "worker"} | BY_STAGE, [], INSIDE),
    ({}, ["stack"], f"config: engines.sglang: {STACKS}"),
)
def test_invalid_options_are_refused_before_the_run(options, contents, why):
    """An invalid option is one fault that says what is wrong or what to write instead."""
    roles, tools = {"rollout": {"engine": "sglang", "tool": "torch"}}, {"contents": contents}
    config = {"steps": [1], "roles": roles, "engines": {"sglang": options}}
    config |= {"tools": {"torch": tools}} if contents else {}

    with pytest.raises(rlprof.ConfigError) as raised:
        rlprof.launch(config, role="rollout")

    (fault,) = raised.value.faults
    assert why in fault
    assert fault == why or not contents
    assert "engines.sglang" in fault


BOTH = ["CPU", "GPU"]


@cases(
    "options, contents, sent",
    ({}, [], {}),
    ({"iterations": Iterations(1)}, [], {"num_steps": 1}),
    ({"by_stage": True, "iterations": Iterations(10)}, [],
     {"profile_by_stage": True, "num_steps": 10}),
    ({"native_merge": True}, [], {"merge_profiles": True}),
    ({"iterations": Iterations(10)}, ["stack"], {"with_stack": True, "num_steps": 10}),
    ({}, ["shapes"], {"record_shapes": True}),
    ({}, ["cpu"], {"activities": ["CPU"]}),
    ({}, ["cuda"], {"activities": ["GPU"]}),
    ({}, ["memory"], {"activities": [*BOTH, "MEM"]}),
    ({}, ["flops"], {}),
)  # fmt: skip
def test_options_and_contents_become_fields_of_the_request(options, contents, sent):
    """Options and contents become fields of SGLang's request; flops are unsupported."""
    request = Request(
        SglangOptions(**options), Facts("Engine", device="cuda"), {"contents": contents}
    )
    window, target = rlprof.Window(7, 8, "rollout"), rlprof.Target("rollout", replica=1)

    fields = request.fields(Path("/traces"), window, target)

    plain = {"output_dir": "/traces", "activities": BOTH, "with_stack": False,
             "record_shapes": False, "profile_id": "gs7-r1"}  # fmt: skip
    assert fields == plain | sent
    per_stage = request.applied.get("iterations", {}).get("of") == "each stage"
    assert per_stage is ("profile_by_stage" in sent)
    assert [*request.unsupported] == ["contents: flops"] * (contents == ["flops"])


GPU, MEM = "activities: GPU", "activities: MEM"


# failures.md: sglang-harm
@cases(
    "device, contents, activities, found, told",
    ("cpu", [], None, ["CPU"], []),
    ("cpu", ["cuda"], None, ["CPU"], [GPU]),
    ("cpu", [], ("CPU", "GPU"), ["CPU"], [GPU]),
    ("cpu", [], ("CPU", "MEM"), ["CPU"], [MEM]),
    ("cuda", [], ("GPU", "MEM"), ["GPU", "MEM"], []),
    ("cpu", [], ("MEM",), "MEM cannot be recorded on cpu", []),
    ("", [], ("MEM",), "MEM cannot be recorded on an unknown device", []),
)
def test_activities_that_a_device_lacks_are_left_out(device, contents, activities, found, told):
    """An activity that the device lacks is left out, or refused if it is the only one."""
    options, facts = SglangOptions(activities=activities), Facts("Engine", device=device)
    request = Request(options, facts, {"contents": contents})

    if isinstance(found, str):
        with pytest.raises(rlprof.CaptureError, match=found):
            request.activities()
        return
    assert [*request.activities()] == found
    assert [*request.unsupported] == told


@pytest.mark.parametrize(("version", "named"), [("9.1", "release 9.1"), ("", "of this engine")])
def test_a_method_that_a_release_lacks_is_named(version, named):
    """`way: worker` is refused with the method that the release lacks."""
    facts = Facts("Engine", version=version, lacks=("Scheduler.run_batch",))

    with pytest.raises(rlprof.CaptureError, match=f"no Scheduler.run_batch: .*{named}"):
        _way(SglangOptions(way="worker"), SimpleNamespace(facts=facts), {"torch": {}})


@pytest.mark.parametrize(("nodes", "counts"), [(1, True), (2, False)])
def test_schedulers_count_steps_only_if_all_of_them_are_here(nodes, counts):
    """Steps are counted in the schedulers only if all of them are on one node."""
    facts = Facts("Engine", device="cuda", is_inside=True, nodes=nodes)
    request = Request(SglangOptions(iterations=Iterations(2)), facts, {})

    fields = request.fields(Path("/traces"), rlprof.Window(7, 8), rlprof.Target("rollout"))

    assert (fields["output_dir"] != "/traces", fields.get("num_steps")) == (
        counts,
        None if counts else 2,
    )


@pytest.mark.parametrize("is_inside", [False, True])
def test_sglangs_own_profiler_in_place_of_the_tool_is_reported(is_inside):
    """If SGLang's profiler replaces the tool unasked, the tool is unsupported, with the remedy."""
    launched = SimpleNamespace(facts=Facts("Engine", is_inside=is_inside))

    said = _unasked(SglangOptions(), launched, {"torch": {}})

    assert [*said] == ([] if is_inside else ["tool: torch"])
    assert all(SWITCH in why for why in said.values())
