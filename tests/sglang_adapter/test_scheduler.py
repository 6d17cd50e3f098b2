"""The generations of SGLang inside its scheduler: what changed when, by its real wheels."""

from __future__ import annotations

from tests.sglang_adapter.history import (
    KEYWORDS,
    SAID,
    every_release,
    known_by,
    number,
    parameters,
)

STATE = {
    "torch_profiler", "torch_profiler_output_dir", "profiler_activities", "profile_id",
    "profiler_start_forward_ct", "profiler_target_forward_ct", "profiler_prefill_ct",
    "profiler_decode_ct", "profiler_target_prefill_ct", "profiler_target_decode_ct",
    "profile_by_stage", "profile_in_progress", "merge_profiles", "rpd_profiler",
}  # fmt: skip
"""What the scheduler's part remembers from its start on, since 0.5.9."""


@every_release
def test_where_the_scheduler_s_part_is(release):
    """In a part that the scheduler holds, whose methods are private."""
    home = "scheduler_components/profiler_manager.py SchedulerProfilerManager"
    part = SAID[release]["scheduler part"]

    assert part["home"] == f"sglang/srt/managers/{home}"
    assert part["methods"]["_profile"] == "def _profile(self, recv_req)"
    assert part["handler"] == "lambda req: self.profiler_manager._profile(req)"
    for name in ("_start_profile", "_stop_profile"):
        assert part["methods"][name] == f"def {name}(self, stage=None)"


@every_release
def test_what_the_scheduler_s_part_holds(release):
    """Of the scheduler it knows the counter alone; its ranks are elsewhere since 0.5.21."""
    fields = SAID[release]["scheduler part"]["fields"]

    ps = {"ps": ""} if number(release) < (0, 5, 21) else {}
    made = "field(init=False)" if number(release) >= (0, 5, 22) else ""
    assert fields == ps | {"get_forward_ct": "", "dp_tp_cpu_group": made}


@every_release
def test_a_session_is_prepared_before_it_starts(release):
    """By a method of the scheduler's part that takes all that is heard, one after the other."""
    said = SAID[release]["scheduler part"]["methods"]

    assert set(parameters(said["_init_profile"])) == known_by(release, KEYWORDS)


@every_release
def test_each_batch_is_told_to_the_scheduler_s_part(release):
    """By one method of one name, which `run_batch` calls."""
    said = SAID[release]
    method = said["scheduler part"]["methods"].get("_profile_batch_predicate")

    assert said["Scheduler"]["told of a batch"] == ["profiler_manager._profile_batch_predicate"]
    assert method == "def _profile_batch_predicate(self, batch)"


@every_release
def test_traces_go_somewhere_without_a_folder(release):
    """Where the scheduler's own variable says, else here."""
    assert SAID[release]["scheduler part"]["folder"] == ["/tmp"]


@every_release
def test_steps_are_counted_where_batches_run(release):
    """By the scheduler alone, whatever the profiler does."""
    said = SAID[release]["Scheduler"]

    assert said["counts"] == ["sglang/srt/managers/scheduler.py Scheduler.run_batch"]
    assert parameters(said["run_batch"])[0] == "batch"
    assert parameters(said["get_internal_state"]) == ["recv_req"]


@every_release
def test_as_many_steps_as_are_asked_for(release):
    """Without a start_step, the step of the start is not one of them."""
    targets = SAID[release]["scheduler part"]["targets"]

    plain = [one for one in targets if "start" not in one]
    since_start = [one for one in targets if "start" in one]

    assert len(plain) == 1
    assert plain[0].endswith("num_steps + 1")
    assert since_start == ["self.profiler_start_forward_ct + num_steps"]


@every_release
def test_what_the_scheduler_s_part_remembers(release):
    """The state a failed session leaves behind; nothing else is new but detailed annotations."""
    part = SAID[release]["scheduler part"]
    first, *others = part["attributes"].items()

    name, made = first
    assert name == "__post_init__"
    since_then = {"detailed_annotations"} if number(release) >= (0, 5, 19) else set()
    own = {"dp_tp_cpu_group"} if number(release) >= (0, 5, 22) else set()
    assert set(made) == STATE | since_then | own | {"_profile_manager"}
    assert {one for _, names in others for one in names} == {
        "torch_profiler_with_stack", "torch_profiler_record_shapes", "profile_prefix",
        "rpd_profile_path",
    }  # fmt: skip


@every_release
def test_activities_that_do_something(release):
    """Whatever else is named is passed over without a word."""
    activities = set(SAID[release]["scheduler part"]["activities"])

    usual = {"CPU", "GPU", "MEM", "CUDA_PROFILER", "RPD", "XPU"}
    assert activities == usual | {"current_platform.get_torch_profiler_activity_str()"}


@every_release
def test_ranks_in_the_names_of_files(release):
    """TP always; DP, PP and EP where there are several of them."""
    names = SAID[release]["scheduler part"]["names"]

    assert set(names.values()) == {"DP-", "PP-", "EP-"}
    by_ranks = [test for test, part in names.items() if part == "DP-" and "num_dp_ranks" in test]
    assert bool(by_ranks) == (number(release) >= (0, 5, 22))


@every_release
def test_plugins_are_loaded(release):
    """By the launch and by each scheduler; by the other processes only since 0.5.22."""
    plugins = SAID[release]["plugins"]

    assert plugins["group"] == "sglang.srt.plugins"
    assert "SGLANG_PLUGINS" in plugins["admitted by"]
    assert plugins["register"] == (
        "def register(cls, target, hook, hook_type=HookType.AFTER, *, source=None)"
    )
    words = ("before", "after", "around", "replace")
    assert plugins["HookType"] == {word.upper(): repr(word) for word in words}
    assert plugins["loaded before a scheduler is made"]
    loaded = {one.partition("srt/")[2] for one in plugins["loaded by"]}
    assert {
        "entrypoints/engine.py __init__",
        "entrypoints/engine.py _launch_subprocesses",
        "managers/scheduler.py run_scheduler_process",
    } <= loaded
    others = {
        "managers/detokenizer_manager.py run_detokenizer_process",
        "managers/data_parallel_controller.py run_data_parallel_controller_process",
    }
    assert others & loaded == (others if number(release) >= (0, 5, 22) else set())
    assert not any(one.startswith("ray/") for one in loaded)


@every_release
def test_variables_of_the_schedulers(release):
    """Where traces go without a folder, and the other profiler, which takes over all of it."""
    since = {
        "SGLANG_TORCH_PROFILER_DIR": (0, 5, 18),
        "SGLANG_PROFILE_V2": (0, 5, 18),
        "SGLANG_MEM_PROFILE_MAX_ENTRIES": (0, 5, 18),
        "SGLANG_PROFILE_BY_STAGE_DECODE_MIN_BS": (0, 5, 20),
    }
    beside = set(SAID[release]["profiling"]["variables"])

    expected = known_by(release, since)

    assert set(SAID[release]["variables"]) - beside == expected


@every_release
def test_weights_and_memory_between_rollouts(release):
    """The tokenizer's words for them, and the class of the scheduler's process that does them."""
    home = "scheduler_components/weight_updater.py SchedulerWeightUpdaterManager"
    since = {"begin_weight_update": (0, 5, 21), "end_weight_update": (0, 5, 21)}
    plain = {"update_weights_from_disk", "update_weights_from_distributed",
             "update_weights_from_tensor", "update_weights_from_ipc", "release_memory_occupation",
             "resume_memory_occupation"}  # fmt: skip

    expected = plain | known_by(release, since)

    said, tokenizer = SAID[release]["Scheduler"]["weights"], SAID[release]["TokenizerManager"]
    assert expected == set(said[f"sglang/srt/managers/{home}"])
    for name in expected:
        assert tokenizer[name] == f"async def {name}(self, obj, request=None)"
    for name in set(since) - expected:
        assert tokenizer[name] is None


@every_release
def test_pauses_take_an_object(release):
    """And reach the scheduler."""
    said = SAID[release]["TokenizerManager"]
    names = ["pause_generation", "continue_generation"]

    for name in names:
        assert said[name] == f"async def {name}(self, obj)"
    weights = SAID[release]["Scheduler"]["weights"]
    assert weights["sglang/srt/managers/scheduler.py Scheduler"] == names
