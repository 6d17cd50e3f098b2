"""The generations of SGLang for who calls it: what changed when, by its real wheels."""

from __future__ import annotations

import re

from tests.sglang_adapter import signatures
from tests.sglang_adapter.history import (
    KEYWORDS,
    RELEASES,
    SAID,
    every_release,
    known_by,
    number,
    parameters,
)


def test_releases_of_every_generation_are_known():
    """The newest six, each by one wheel with its checksum."""
    every = {release.partition("==")[2] for release in SAID}

    assert set(signatures.RELEASES) == set(SAID)
    assert every == {f"0.5.{minor}" for minor in range(18, 24)}
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
def test_a_session_is_one_object(release):
    """`start_profile(output_dir=...)` fails."""
    said = SAID[release]
    names = parameters(said["TokenizerManager"]["start_profile"])

    assert names == ["req"]
    assert said["request base"] == "msgspec.Struct"


@every_release
def test_a_request_says_its_kind(release):
    """By `req_type`; the scheduler's part reads the same."""
    said = SAID[release]

    assert set(said["requests"]["ProfileReq"]) == known_by(release, KEYWORDS) | {"req_type"}
    assert said["scheduler part"]["kind"] == ["req_type"]
    assert said["request kinds"] == {"START_PROFILE": "1", "STOP_PROFILE": "2"}
    assert said["requests"]["ProfileReqOutput"] == {"success": "", "message": ""}


@every_release
def test_nothing_is_asked_for_by_default(release):
    """A request without words starts a session: no steps, no folder, nothing merged."""
    requests = SAID[release]["requests"]
    flags = {"profile_by_stage", "merge_profiles", "detailed_annotations"}

    said = dict(requests["ProfileReq"])
    assert said.pop("req_type") == "ProfileReqType.START_PROFILE"
    assert said == {one: "False" if one in flags else "None" for one in said}


@every_release
def test_http_hears_the_same_words(release):
    """Its body is the request's."""
    said = SAID[release]
    taken = "Annotated[Optional[ProfileReq], Body()]"

    assert said["requests"]["ProfileReqInput"] is None
    assert said["HTTP"]["/start_profile"]["takes"] == [taken]
    assert said["HTTP"]["/start_profile"]["methods"] == ["GET", "POST"]
    assert said["HTTP"]["/stop_profile"] == {"methods": ["GET", "POST"], "takes": []}


@every_release
def test_a_server_tells_of_itself(release):
    """By `/server_info`."""
    http = SAID[release]["HTTP"]

    assert http["/server_info"] == {"methods": ["GET"], "takes": []}
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
    assert said["scheduler part"]["refuses what torch does"]


@every_release
def test_a_cancelled_call_does_not_block_profiling(release):
    """The queue is left in order, and a reply nobody waits for is dropped."""
    said = SAID[release]["communicator"]

    assert said["home"] == "sglang/srt/managers/communicator.py FanOutCommunicator"
    assert said["outlives a cancelled call"]
    assert said["drops a late reply"]


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
    """In a mixin of the TokenizerManager."""
    home = "sglang/srt/managers/tokenizer_control_mixin.py TokenizerControlMixin"

    assert SAID[release]["profiling"]["home"] == home


@every_release
def test_arguments_of_the_launch(release):
    """What the adapter reads is there; sleep_on_idle is off where nothing is said."""
    said = SAID[release]["ServerArgs"]
    layout = {"tp_size": "1", "dp_size": "1", "pp_size": "1", "nnodes": "1", "node_rank": "0"}

    assert {name: said[name] for name in layout} == layout
    assert (said["device"], said["base_gpu_id"], said["enable_metrics"]) == ("None", "0", "False")
    assert (said["ep_size"], said["gpu_id_step"], said["speculative_algorithm"]) == (
        "1", "1", "None",
    )  # fmt: skip
    assert said["enable_dp_attention"] == said["enable_request_time_stats_logging"] == "False"
    for name in ("sleep_on_idle", "export_metrics_to_file", "use_ray"):
        assert said[name] == "False"
    assert said["attn_dp_size"] == ("1" if number(release) >= (0, 5, 22) else None)


@every_release
def test_what_became_of_the_arguments_can_be_asked_for_since_0519(release):
    """By `resolved_dict`, which every later release has."""
    assert SAID[release]["ServerArgs.resolved_dict"] == (number(release) >= (0, 5, 19))


@every_release
def test_times_of_requests_need_enable_metrics(release):
    """Of its times a reply has its latency without being asked, and nothing else."""
    said = SAID[release]["meta_info"]
    plain, at_end = said["nothing"], said["finished"]
    asked = {*said.get("enable_metrics", ()), *said.get("enable_metrics, finished", ())}

    assert {"finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens"} <= set(plain)
    assert "e2e_latency" in at_end
    assert at_end == ["e2e_latency"]
    assert {one for one in plain if re.search("_(ts|time|latency)$", one)} == {
        "response_sent_to_client_ts"
    }
    assert {"queue_time", "request_received_ts", "decode_throughput"} <= asked


@every_release
def test_times_of_requests_have_these_names(release):
    """Those that the adapter reads are among them."""
    said = SAID[release]["meta_info"]
    asked = {*said["enable_metrics"], *said["enable_metrics, finished"]}
    new = {"request_finished_ts", "prefill_finished_time", "forward_entry_time",
           "api_server_dispatch_finish_ts"}  # fmt: skip

    assert new <= asked
    assert ("first_token_latency" in asked) == (number(release) >= (0, 5, 21))
    assert [one for one in said["nothing"] if "retractions" in one] == ["num_retractions"]


@every_release
def test_variables_that_beat_the_caller(release):
    """Read beside the tokenizer: on unless they say false."""
    names = "SGLANG_PROFILE_WITH_STACK", "SGLANG_PROFILE_RECORD_SHAPES"

    expected = dict.fromkeys(names, "true")

    assert SAID[release]["profiling"]["variables"] == expected


@every_release
def test_an_engine_takes_keywords(release):
    """`Engine.start_profile(**kwargs)` has stayed as it is."""
    said = SAID[release]["Engine"]

    assert said["start_profile"] == "def start_profile(self, **kwargs)"
    assert said["stop_profile"] == "def stop_profile(self)"
