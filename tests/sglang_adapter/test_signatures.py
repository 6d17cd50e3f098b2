"""What the adapter stands on is in each release of SGLang that was read, by its real wheels."""

import pytest

from rlprof_sglang import _facts, _requests
from tests.sglang_adapter import signatures
from tests.signatures.record import number

SAID = signatures.RECORD.kept()
every_release = pytest.mark.parametrize("release", SAID)
ASKED = {"output_dir", "num_steps", "activities", "with_stack", "record_shapes",
         "profile_by_stage", "start_step", "merge_profiles", "profile_id"}  # fmt: skip
"""What the adapter says of a session, of any release."""
STATE = {
    "torch_profiler", "torch_profiler_output_dir", "profiler_activities", "profile_id",
    "profiler_start_forward_ct", "profiler_target_forward_ct", "profiler_prefill_ct",
    "profiler_target_prefill_ct", "profiler_decode_ct", "profile_by_stage", "profile_in_progress",
}  # fmt: skip
"""What the guard reads of the scheduler's part, or puts there."""


def test_releases_of_every_generation_are_known():
    """The newest six, in their order."""
    assert tuple(sorted(SAID, key=number)) == tuple(SAID) == signatures.RELEASES
    assert len(SAID) == 6


@every_release
def test_a_session_is_one_object(release):
    """HTTP hears what a call hears, the scheduler reads its kind, and counts steps exactly."""
    said, part = SAID[release], SAID[release]["scheduler part"]

    assert said["TokenizerManager"]["start_profile"].startswith("async def start_profile(self, req")
    assert set(said["requests"]["ProfileReq"]) >= ASKED
    assert part["reads"] == ["req_type"]
    assert all(one.endswith("num_steps + 1") for one in part["targets"] if "start" not in one)
    assert {"/start_profile", "/stop_profile", "/server_info"} <= set(said["HTTP"])


@every_release
def test_what_the_part_in_the_schedulers_stands_on_is_there(release):
    """The plugins of SGLang, the methods that are hooked, and the state that the guard reads."""
    said, part = SAID[release], SAID[release]["scheduler part"]

    assert said["plugins"]["group"] == "sglang.srt.plugins"
    assert "SGLANG_PLUGINS" in said["plugins"]["admitted by"]
    assert said["plugins"]["loaded before a scheduler is made"]
    assert {"_profile", "_stop_profile", "_profile_batch_predicate"} <= set(part["methods"])
    assert set(part["attributes"]) >= STATE
    assert part["refuses what torch does"]
    assert said["Scheduler"]["run_batch"].startswith("def run_batch(self, batch")
    assert said["Scheduler"]["get_internal_state"] is not None


@every_release
def test_what_the_frontend_is_asked_is_there(release):
    """Calls, arguments of the launch, and what is said of requests."""
    said = SAID[release]

    assert None not in said["TokenizerManager"].values()
    has_resolved = number(release) >= (0, 5, 22)
    for name in _facts._READ:
        is_there = has_resolved or name != "attn_dp_size"
        assert (said["ServerArgs"][name] is not None) == is_there
    assert said["ServerArgs.resolved_dict"] == (number(release) >= (0, 5, 19))
    assert {*said["meta_info"], "id"} >= set(_requests._KEPT)
