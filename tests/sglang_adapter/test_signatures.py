"""The generations of SGLang, by the signatures of its real wheels: what changed, and when."""

from __future__ import annotations

import ast
import re

import pytest

from tests.sglang_adapter import signatures
from tests.sglang_adapter.signatures import number

SAID = signatures.kept()
RELEASES = sorted(SAID, key=number)

every_release = pytest.mark.parametrize("release", RELEASES)

KEYWORDS = {
    "output_dir": (0, 4, 6), "num_steps": (0, 4, 6), "activities": (0, 4, 6),
    "with_stack": (0, 4, 6), "record_shapes": (0, 4, 6), "profile_by_stage": (0, 4, 7),
    "start_step": (0, 4, 9, 2), "merge_profiles": (0, 5, 3, 2), "profile_prefix": (0, 5, 6),
    "profile_stages": (0, 5, 6), "profile_id": (0, 5, 15), "detailed_annotations": (0, 5, 19),
}  # fmt: skip
"""What a caller can say of a session → the first release that hears it."""

STATE = {
    "torch_profiler", "torch_profiler_output_dir", "profiler_activities", "profile_id",
    "profiler_start_forward_ct", "profiler_target_forward_ct", "profiler_prefill_ct",
    "profiler_decode_ct", "profiler_target_prefill_ct", "profiler_target_decode_ct",
    "profile_by_stage", "profile_in_progress", "merge_profiles", "rpd_profiler",
}  # fmt: skip
"""What the scheduler's part remembers from its start on, since 0.5.9."""


def parameters(text):
    """Name the parameters of a signature, without `self`."""
    function = ast.parse(f"{text}: ...").body[0].args
    names = [one.arg for one in (*function.posonlyargs, *function.args, *function.kwonlyargs)]
    return names[1:]


def hearing(release):
    """Return what a caller of this release can say of a session."""
    return {name for name, since in KEYWORDS.items() if number(release) >= since}


def test_releases_of_every_generation_are_known():
    """From 0.4.6.post5 to 0.5.23, each by one wheel with its checksum."""
    every = {release.partition("==")[2] for release in SAID}

    assert set(signatures.RELEASES) == set(SAID)
    assert len(every) == 24
    assert {f"0.5.{minor}" for minor in (9, *range(10, 17), *range(18, 24))} <= every
    for release, said in SAID.items():
        assert said["wheel"].startswith(f"sglang-{release.partition('==')[2]}-")
        assert len(bytes.fromhex(said["sha256"])) == 32


def test_releases_are_ordered_as_they_came():
    """A post-release stands after its release, and 0.5.10 after 0.5.9."""
    assert number("sglang==0.5.3.post2") == (0, 5, 3, 2)
    assert tuple(RELEASES) == signatures.RELEASES


@every_release
def test_what_a_tokenizer_is_asked_is_there(release):
    """Coroutines to start, to stop and to tell the state; a loop of its own, which it binds."""
    said = SAID[release]["TokenizerManager"]

    assert said["start_profile"].startswith("async def start_profile(self, ")
    assert said["stop_profile"] == "async def stop_profile(self)"
    assert said["get_internal_state"] == "async def get_internal_state(self)"
    assert SAID[release]["profiling"]["state"] == "List[Dict[Any, Any]]"
    assert said["auto_create_handle_loop"] == "def auto_create_handle_loop(self)"


@every_release
def test_a_session_is_one_object_since_0515(release):
    """Before, it is keywords: `start_profile(output_dir=...)` fails from 0.5.15 on."""
    said = SAID[release]
    names = parameters(said["TokenizerManager"]["start_profile"])

    if number(release) >= (0, 5, 15):
        assert names == ["req"]
        assert set(said["requests"]["ProfileReq"]) - {"req_type"} == hearing(release)
        assert said["request base"] == "msgspec.Struct"
    else:
        assert set(names) == hearing(release)
        assert said["request base"] == "dataclass"


@every_release
def test_a_request_says_its_kind(release):
    """By `type` before 0.5.15, by `req_type` since; the scheduler's part reads the same."""
    said, is_new = SAID[release], number(release) >= (0, 5, 15)
    kind = "req_type" if is_new else "type"

    assert {"type", "req_type"} & set(said["requests"]["ProfileReq"]) == {kind}
    assert said["scheduler part"]["kind"] == [kind]
    assert said["request kinds"] == {"START_PROFILE": "1", "STOP_PROFILE": "2"}
    assert said["requests"]["ProfileReqOutput"] == {"success": "", "message": ""}


@every_release
def test_http_hears_the_same_words(release):
    """Its body has a class of its own up to 0.5.14, without a profile_id; later the request's."""
    said, is_new = SAID[release], number(release) >= (0, 5, 15)
    body = said["requests"]["ProfileReq" if is_new else "ProfileReqInput"]

    assert set(body) - {"req_type"} == hearing(release)
    assert (said["requests"]["ProfileReqInput"] is None) == is_new
    assert said["HTTP"]["/start_profile"]["takes"] == [
        "Annotated[Optional[ProfileReq], Body()]" if is_new else "Optional[ProfileReqInput]"
    ]
    assert said["HTTP"]["/start_profile"]["methods"] == ["GET", "POST"]
    assert said["HTTP"]["/stop_profile"] == {"methods": ["GET", "POST"], "takes": []}


@every_release
def test_a_server_tells_of_itself(release):
    """By `/server_info` from 0.5.6 on, by `/get_server_info` always."""
    http = SAID[release]["HTTP"]

    assert (http["/server_info"] is not None) == (number(release) >= (0, 5, 6))
    assert http["/get_server_info"] == {"methods": ["GET"], "takes": []}
    assert http["/health"]["methods"] == ["GET"]


@every_release
def test_a_refusal_is_an_exception(release):
    """Only the first reply is looked at; the words of both refusals have never changed."""
    said = SAID[release]

    assert said["profiling"]["reply"] == [
        "result = (await self.profile_communicator(req))[0]",
        "return result",
        "raise RuntimeError(result.message)",
    ]
    assert said["profiling"]["refused"] == ["not result.success"]
    assert {
        "Profiling is already in progress. Call /stop_profile first.",
        "Profiling is not in progress. Call /start_profile first.",
    } <= set(said["scheduler part"]["refusals"])
    assert said["scheduler part"]["refuses what torch does"] == (number(release) >= (0, 5, 14))


@every_release
def test_a_cancelled_call_blocks_profiling_before_0516(release):
    """Since then the queue is left in order, and a reply nobody waits for is dropped."""
    said, is_new = SAID[release]["communicator"], number(release) >= (0, 5, 16)

    assert said["outlives a cancelled call"] == is_new
    assert said["drops a late reply"] == is_new


@every_release
def test_each_rank_of_data_parallel_answers(release):
    """A start waits for as many replies as there are DP ranks, by whatever name these have."""
    fan = SAID[release]["profiling"]["replies"]

    if number(release) >= (0, 5, 22):
        assert fan == "get_parallel().num_dp_ranks"
    else:
        assert fan.endswith(".dp_size")


@every_release
def test_where_the_tokenizer_s_part_is(release):
    """On the TokenizerManager itself, then in a mixin, then in one with another name."""
    homes = {
        (0, 4, 6): "tokenizer_manager.py TokenizerManager",
        (0, 5, 2): "tokenizer_communicator_mixin.py TokenizerCommunicatorMixin",
        (0, 5, 11): "tokenizer_control_mixin.py TokenizerControlMixin",
    }

    since = max(first for first in homes if first <= number(release))

    assert SAID[release]["profiling"]["home"] == f"sglang/srt/managers/{homes[since]}"


@every_release
def test_where_the_scheduler_s_part_is(release):
    """In the scheduler, in a mixin of its, then in a part it holds, whose methods are private."""
    homes = {
        (0, 4, 6): "scheduler.py Scheduler",
        (0, 4, 10): "scheduler_profiler_mixin.py SchedulerProfilerMixin",
        (0, 5, 13): "scheduler_components/profiler_manager.py SchedulerProfilerManager",
    }
    part = SAID[release]["scheduler part"]

    since = max(first for first in homes if first <= number(release))
    is_part = since == (0, 5, 13)
    mark = "_" if is_part else ""

    assert part["home"] == f"sglang/srt/managers/{homes[since]}"
    assert {f"{mark}start_profile", f"{mark}stop_profile", f"{mark}profile"} <= set(part["methods"])
    assert part["methods"][f"{mark}profile"] == f"def {mark}profile(self, recv_req)"
    held = "lambda req: self.profiler_manager._profile(req)"
    assert part["handler"] == (held if is_part else "self.profile")
    assert ("get_forward_ct" in part["fields"]) == is_part


@every_release
def test_steps_are_told_to_the_scheduler_s_part_before_the_forward(release):
    """With the batch that comes, by one method of one name since 0.4.7."""
    told = SAID[release]["scheduler part"]["methods"].get("_profile_batch_predicate")

    known = "def _profile_batch_predicate(self, batch)"
    assert told == (known if number(release) >= (0, 4, 7) else None)


@every_release
def test_steps_are_counted_where_batches_run(release):
    """By the scheduler alone, whatever the profiler does."""
    said = SAID[release]["Scheduler"]

    assert said["counts"] == ["sglang/srt/managers/scheduler.py Scheduler.run_batch"]
    assert parameters(said["run_batch"])[0] == "batch"
    assert parameters(said["get_internal_state"]) == ["recv_req"]


@every_release
def test_steps_are_one_too_few_before_0516(release):
    """Without a start_step, the step of the start was taken for the first of those asked for."""
    targets = SAID[release]["scheduler part"]["targets"]

    plain = [one for one in targets if "start" not in one]
    since_start = [one for one in targets if "start" in one]

    assert len(plain) == 1
    assert plain[0].endswith(
        "num_steps + 1" if number(release) >= (0, 5, 16) else "_ct() + num_steps"
        if number(release) >= (0, 5, 13) else "_ct + num_steps"
    )  # fmt: skip
    expected = ["self.profiler_start_forward_ct + num_steps"]
    assert since_start == (expected if number(release) >= (0, 4, 9, 2) else [])


@pytest.mark.parametrize("release", [one for one in RELEASES if number(one) >= (0, 5, 9)])
def test_what_the_scheduler_s_part_remembers(release):
    """The state a failed session leaves behind; nothing else is new but detailed annotations."""
    part = SAID[release]["scheduler part"]
    first, *others = part["attributes"].items()

    name, made = first
    assert name == ("__post_init__" if number(release) >= (0, 5, 13) else "init_profiler")
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
    since = {"RPD": (0, 4, 7), "XPU": (0, 5, 10),
             "current_platform.get_torch_profiler_activity_str()": (0, 5, 16)}  # fmt: skip

    expected = {name for name, first in since.items() if number(release) >= first}

    activities = set(SAID[release]["scheduler part"]["activities"])
    assert activities == {"CPU", "GPU", "MEM", "CUDA_PROFILER"} | expected


@every_release
def test_ranks_in_the_names_of_files(release):
    """TP always; DP, PP and EP where there are several of them, since 0.5.3.post2."""
    names = SAID[release]["scheduler part"]["names"]

    expected = {"DP-", "PP-", "EP-"} if number(release) >= (0, 5, 3, 2) else set()
    assert set(names.values()) == expected
    by_ranks = [test for test, part in names.items() if part == "DP-" and "num_dp_ranks" in test]
    assert bool(by_ranks) == (number(release) >= (0, 5, 22))


@every_release
def test_plugins_are_loaded_since_0511(release):
    """By the launch and by each scheduler; by the other processes only since 0.5.22."""
    plugins = SAID[release]["plugins"]

    assert (plugins is not None) == (number(release) >= (0, 5, 11))
    if plugins is None:
        return
    assert plugins["group"] == "sglang.srt.plugins"
    assert "SGLANG_PLUGINS" in plugins["admitted by"]
    assert plugins["register"] == (
        "def register(cls, target, hook, hook_type=HookType.AFTER, *, source=None)"
    )
    assert set(plugins["HookType"]) == {"BEFORE", "AFTER", "AROUND", "REPLACE"}
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
def test_arguments_of_the_launch(release):
    """What the adapter reads is there; sleep_on_idle is off where nothing is said."""
    said = SAID[release]["ServerArgs"]
    layout = {"tp_size": "1", "dp_size": "1", "pp_size": "1", "nnodes": "1", "node_rank": "0"}

    assert {name: said[name] for name in layout} == layout
    assert (said["device"], said["base_gpu_id"], said["enable_metrics"]) == ("None", "0", "False")
    assert said["enable_dp_attention"] == "False"
    assert said["sleep_on_idle"] == (None if number(release) < (0, 4, 9) else "False")
    assert (said["attn_dp_size"] is None) == (number(release) < (0, 5, 22))


@every_release
def test_arguments_are_not_what_became_of_them_since_0519(release):
    """Before, the launch wrote what it made of them into the same fields."""
    assert SAID[release]["ServerArgs.resolved_dict"] == (number(release) >= (0, 5, 19))


@every_release
def test_times_of_requests_need_enable_metrics(release):
    """Of its times a reply has its latency without being asked, since 0.5.6 nothing else."""
    said = SAID[release]["meta_info"]
    plain, at_end = said["nothing"], said["finished"]
    asked = {*said.get("enable_metrics", ()), *said.get("enable_metrics, finished", ())}

    assert {"finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens"} <= set(plain)
    assert "e2e_latency" in at_end
    if number(release) >= (0, 5, 6):
        assert at_end == ["e2e_latency"]
        assert {one for one in plain if re.search("_(ts|time|latency)$", one)} == {
            "response_sent_to_client_ts"
        }
        assert {"queue_time", "request_received_ts", "decode_throughput"} <= asked
    elif number(release) < (0, 5, 5):
        assert asked == set()


@pytest.mark.parametrize("release", [one for one in RELEASES if number(one) >= (0, 5, 9)])
def test_times_of_requests_have_other_names_since_0510(release):
    """What 0.5.9 tells as `decode_finished_ts` is `request_finished_ts`, among others."""
    said = SAID[release]["meta_info"]
    asked = {*said["enable_metrics"], *said["enable_metrics, finished"]}
    old = {"decode_finished_ts", "prefill_finished_ts", "request_sent_to_scheduler_ts"}
    new = {"request_finished_ts", "prefill_finished_time", "forward_entry_time",
           "api_server_dispatch_finish_ts"}  # fmt: skip
    is_new = number(release) >= (0, 5, 10)

    assert asked & (old | new) == (new if is_new else old)
    assert ("first_token_latency" in asked) == (number(release) >= (0, 5, 21))
    retractions = "num_retractions" if number(release) >= (0, 5, 12) else "total_retractions"
    assert [one for one in said["nothing"] if "retractions" in one] == [retractions]


@every_release
def test_variables_that_beat_the_caller(release):
    """Read beside the tokenizer: on unless they say false, stacks since 0.4.7."""
    since = {"SGLANG_PROFILE_WITH_STACK": (0, 4, 7), "SGLANG_PROFILE_RECORD_SHAPES": (0, 5, 5)}

    expected = {name: "true" for name, first in since.items() if number(release) >= first}

    assert SAID[release]["profiling"]["variables"] == expected


@every_release
def test_variables_of_the_schedulers(release):
    """Where traces go without a folder, and the other profiler, which takes over all of it."""
    since = {
        "SGLANG_TORCH_PROFILER_DIR": (0, 4, 6),
        "SGLANG_PROFILE_V2": (0, 5, 6),
        "SGLANG_MEM_PROFILE_MAX_ENTRIES": (0, 5, 18),
        "SGLANG_PROFILE_BY_STAGE_DECODE_MIN_BS": (0, 5, 20),
    }
    beside = set(SAID[release]["profiling"]["variables"])

    expected = {name for name, first in since.items() if number(release) >= first}

    assert set(SAID[release]["variables"]) - beside == expected


@every_release
def test_weights_and_memory_between_rollouts(release):
    """The tokenizer's words for them, and the class of the scheduler's process that does them."""
    homes = {
        (0, 4, 6): "scheduler.py Scheduler",
        (0, 4, 10): "scheduler_update_weights_mixin.py SchedulerUpdateWeightsMixin",
        (0, 5, 13): "scheduler_components/weight_updater.py SchedulerWeightUpdaterManager",
    }
    since = {"update_weights_from_ipc": (0, 5, 5), "begin_weight_update": (0, 5, 21),
             "end_weight_update": (0, 5, 21)}  # fmt: skip
    plain = {"update_weights_from_disk", "update_weights_from_distributed",
             "update_weights_from_tensor", "release_memory_occupation",
             "resume_memory_occupation"}  # fmt: skip

    expected = plain | {name for name, first in since.items() if number(release) >= first}

    said, tokenizer = SAID[release]["Scheduler"]["weights"], SAID[release]["TokenizerManager"]
    home = homes[max(first for first in homes if first <= number(release))]
    assert expected == set(said[f"sglang/srt/managers/{home}"])
    for name in expected:
        assert tokenizer[name] == f"async def {name}(self, obj, request=None)"


@every_release
def test_pauses_take_an_object_since_056(release):
    """And have no object before; before 0.4.9 there is no pause."""
    said = SAID[release]["TokenizerManager"]["pause_generation"]

    names = None if said is None else parameters(said)
    assert names == (["obj"] if number(release) >= (0, 5, 6) else
                     [] if number(release) >= (0, 4, 9) else None)  # fmt: skip
    home = SAID[release]["Scheduler"]["weights"].get(
        "sglang/srt/managers/scheduler.py Scheduler", []
    )
    assert ("pause_generation" in home) == (number(release) >= (0, 5, 6))


@every_release
def test_an_engine_takes_keywords_since_053(release):
    """`Engine.start_profile(**kwargs)` has stayed as it is; before, it takes nothing."""
    said = SAID[release]["Engine"]

    words = "self, **kwargs" if number(release) >= (0, 5, 3) else "self"
    assert said["start_profile"] == f"def start_profile({words})"
    assert said["stop_profile"] == "def stop_profile(self)"
