"""What the adapter stands on is in each release of SGLang that was read, by its real wheels."""

from __future__ import annotations

import pytest

from rlprof_sglang import _facts, _requests
from tests.sglang_adapter import signatures
from tests.sglang_adapter.generations import PROFILER
from tests.sglang_adapter.history import RELEASES, SAID, number, parameters

every_release = pytest.mark.parametrize("release", RELEASES)
ASKED = {"output_dir", "num_steps", "activities", "with_stack", "record_shapes",
         "profile_by_stage", "start_step", "merge_profiles"}  # fmt: skip
"""What the adapter says of a session, of any release."""
STATE = {
    "torch_profiler", "torch_profiler_output_dir", "profiler_activities", "profile_id",
    "profiler_start_forward_ct", "profiler_target_forward_ct", "profiler_prefill_ct",
    "profiler_target_prefill_ct", "profiler_decode_ct", "profile_by_stage", "profile_in_progress",
}  # fmt: skip
"""What the guard reads of the scheduler's part, or puts there."""


def test_releases_of_every_generation_are_known():
    """The newest six, in their order, each by one wheel with its checksum."""
    assert tuple(RELEASES) == tuple(SAID) == signatures.RELEASES
    assert len(RELEASES) == 6
    for release, said in SAID.items():
        assert said["wheel"].startswith(f"sglang-{release.partition('==')[2]}-")
        assert len(bytes.fromhex(said["sha256"])) == 32


@every_release
def test_a_session_is_one_object(release):
    """HTTP hears what a call hears, and the scheduler reads its kind."""
    said = SAID[release]
    body = set(said["requests"]["ProfileReq"])

    assert parameters(said["TokenizerManager"]["start_profile"]) == ["req"]
    assert body >= ASKED | {"profile_id"}
    assert said["scheduler part"]["kind"] == ["req_type"]
    assert {"/start_profile", "/stop_profile", "/server_info"} <= set(said["HTTP"])


@every_release
def test_a_session_has_the_steps_that_are_asked_for(release):
    """Without a start_step, too, the step of the start is not one of them."""
    targets = SAID[release]["scheduler part"]["targets"]

    assert all(one.endswith("num_steps + 1") for one in targets if "start" not in one)


@every_release
def test_what_the_part_in_the_schedulers_stands_on_is_there(release):
    """The plugins of SGLang, the methods that are hooked, and the state that the guard reads."""
    said, part = SAID[release], SAID[release]["scheduler part"]
    file, _, name = part["home"].removesuffix(".py").partition(".py ")

    assert said["plugins"]["group"] == "sglang.srt.plugins"
    assert "SGLANG_PLUGINS" in said["plugins"]["admitted by"]
    assert said["plugins"]["loaded before a scheduler is made"]
    assert f"{file.replace('/', '.')}.{name}" == PROFILER
    assert {"_profile", "_profile_batch_predicate"} <= set(part["methods"])
    assert set().union(*part["attributes"].values()) >= STATE
    assert part["refuses what torch does"]
    assert parameters(said["Scheduler"]["run_batch"])[0] == "batch"
    assert said["Scheduler"]["get_internal_state"] is not None


@every_release
def test_what_the_frontend_is_asked_is_there(release):
    """Calls that end a window, arguments of the launch, and the times of requests."""
    said = SAID[release]
    times = {"forward_entry_time", "prefill_finished_time", "queue_time"}
    asked = {*said["meta_info"]["enable_metrics"], *said["meta_info"]["enable_metrics, finished"]}

    for call in ("stop_profile", "get_internal_state"):
        assert said["TokenizerManager"][call] is not None
    has_resolved = number(release) >= (0, 5, 22)
    for name in _facts._READ:
        is_there = has_resolved or name != "attn_dp_size"
        assert (said["ServerArgs"][name] is not None) == is_there
    assert said["ServerArgs.resolved_dict"] == (number(release) >= (0, 5, 19))
    assert times <= asked & set(_requests._KEPT)
    assert {"finish_reason", "num_retractions"} <= set(said["meta_info"]["nothing"])
