"""The names of SGLang that the adapter uses exist in each release on record."""

import pytest

from rlprof_sglang import _facts, _requests
from tests.sglang_adapter import signatures
from tests.signatures.record import number

SAID = signatures.RECORD.kept()
every_release = pytest.mark.parametrize("release", SAID)
ASKED = {"output_dir", "num_steps", "activities", "with_stack", "record_shapes",
         "profile_by_stage", "start_step", "merge_profiles", "profile_id"}  # fmt: skip
"""The fields that the adapter sets in a request, in every release."""
STATE = {
    "torch_profiler", "torch_profiler_output_dir", "profiler_activities", "profile_id",
    "profiler_start_forward_ct", "profiler_target_forward_ct", "profiler_prefill_ct",
    "profiler_target_prefill_ct", "profiler_decode_ct", "profile_by_stage", "profile_in_progress",
}  # fmt: skip
"""The attributes that the guard reads or sets on the scheduler's profiler."""


def test_the_six_supported_releases_are_on_record():
    """The record has the six supported releases, in their order."""
    assert tuple(sorted(SAID, key=number)) == tuple(SAID) == signatures.RELEASES
    assert len(SAID) == 6


@every_release
def test_a_session_is_one_object(release):
    """`start_profile` takes one object that has every field in use, also over HTTP."""
    said, part = SAID[release], SAID[release]["scheduler part"]

    assert said["TokenizerManager"]["start_profile"].startswith("async def start_profile(self, req")
    assert set(said["requests"]["ProfileReq"]) >= ASKED
    assert part["reads"] == ["req_type"]
    assert all(one.endswith("num_steps + 1") for one in part["targets"] if "start" not in one)
    assert {"/start_profile", "/stop_profile", "/server_info"} <= set(said["HTTP"])


@every_release
def test_the_names_used_in_schedulers_exist(release):
    """Each release has the plugin group, the hooked methods and the state that the guard reads."""
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
def test_the_names_used_of_the_frontend_exist(release):
    """Each release has the methods, launch arguments and reply fields that the adapter uses."""
    said = SAID[release]

    assert None not in said["TokenizerManager"].values()
    has_resolved = number(release) >= (0, 5, 22)
    for name in _facts._READ:
        is_there = has_resolved or name != "attn_dp_size"
        assert (said["ServerArgs"][name] is not None) == is_there
    assert said["ServerArgs.resolved_dict"] == (number(release) >= (0, 5, 19))
    assert {*said["meta_info"], "id"} >= set(_requests._KEPT)
