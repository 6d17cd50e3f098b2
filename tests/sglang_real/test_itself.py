"""What SGLang itself does, without rlprof: what the adapter rests on, by each way to have it."""

from __future__ import annotations

import pytest

from tests.sglang_real.conftest import steps
from tests.sglang_real.itself import LENGTHS, STAGES

pytestmark = pytest.mark.slow
WAYS = {
    "alone": {"name": "alone"},
    "tp 2": {"name": "several", "sizes": {"tp_size": 2}},
    "dp 2": {"name": "several", "sizes": {"dp_size": 2}},
    "server": {"name": "server"},
}
SCHEDULERS = {
    "alone": ["sglang::scheduler"],
    "tp 2": ["sglang::scheduler_TP0", "sglang::scheduler_TP1"],
    "dp 2": ["sglang::scheduler_DP0", "sglang::scheduler_DP1"],
    "server": ["sglang::scheduler"],
}
WITH_METRICS = ("alone", "server")
ALWAYS = {
    "id", "finish_reason", "prompt_tokens", "completion_tokens", "cached_tokens",
    "num_retractions", "weight_version", "e2e_latency", "response_sent_to_client_ts", "dp_rank",
}  # fmt: skip
TIMES = (
    "request_received_ts", "forward_entry_time", "prefill_finished_time",
    "request_finished_ts", "response_sent_to_client_ts",
)  # fmt: skip
"""Seconds since the epoch, in the order in which a request goes through them.

The end of its dispatch is none of them: a scheduler may have it in a batch by then.
"""


@pytest.fixture(scope="module", name="driven", params=WAYS)
def _driven(request, drive):
    return drive(**WAYS[request.param])


@pytest.fixture(name="way")
def _way(request):
    return request.node.callspec.params["driven"]


def said(driven, what):
    """Return one of the things that were told of SGLang itself."""
    return next(one[what] for one in driven.of("itself") if what in one)


def profiled(driven):
    """Return what each scheduler's profiler was asked first, by the name of its process."""
    found = {}
    for one in driven.framework:
        if one["what"] == "profile":
            found.setdefault(one["title"], []).append(one)
    return {title: asked[:2] for title, asked in found.items()}


def test_a_plugin_is_loaded_in_the_host_and_in_every_scheduler(driven, way):
    """And nowhere else: not where tokens are turned to text, nor where ranks are chosen."""
    loaded = [one["pid"] for one in driven.framework if one["what"] == "loaded"]
    schedulers = {one["pid"] for one in driven.framework if one["what"] == "profile"}

    assert len(loaded) == len(set(loaded)) == len(SCHEDULERS[way]) + 1
    assert len(schedulers & set(loaded)) == len(SCHEDULERS[way])


def test_a_request_to_profile_comes_to_every_scheduler(driven, way):
    """A plugin sees it there, with the answer, and the stages as they were given: any texts."""
    found = profiled(driven)

    assert sorted(found) == SCHEDULERS[way]
    for asked in found.values():
        assert [one["asked"] for one in asked] == ["START_PROFILE", "STOP_PROFILE"]
        assert [one["success"] for one in asked] == [True, True]
        assert [one["stages"] for one in asked] == [STAGES, None]


def test_every_scheduler_says_what_state_it_is_in(driven, way):
    """The first of each replica does, in no order; a plugin can add to it."""
    states = said(driven, "states")

    pids = {asked[0]["pid"] for name, asked in profiled(driven).items() if "TP1" not in name}
    assert len(states) == (2 if way == "dp 2" else 1)
    assert {one["framework"]["pid"] for one in states} == pids
    assert {(one["tp_size"], one["dp_size"]) for one in states} == {
        "tp 2": {(2, 1)},
        "dp 2": {(1, 2)},
    }.get(way, {(1, 1)})
    assert not {"tp_rank", "dp_rank", "forward_ct"} & states[0].keys()


def test_a_plugin_counts_the_forward_steps(driven):
    """As many as the scheduler counts itself, and as it has spans for in its own trace."""
    states = {one["framework"]["pid"]: one["framework"] for one in said(driven, "states")}

    for one in states.values():
        assert one["steps"] == one["forward_ct"]
    for asked in profiled(driven).values():
        ran = asked[1]["steps"] - asked[0]["steps"]
        assert ran == len(steps(trace_of(driven, asked[1]["title"])))
        assert ran > min(LENGTHS.values())


def trace_of(driven, title):
    """Return the trace that SGLang has made of a scheduler."""
    rank = title.removeprefix("sglang::scheduler").removeprefix("_")
    part = {"": "TP-0", "DP0": "DP-0", "DP1": "DP-1", "TP0": "TP-0", "TP1": "TP-1"}[rank]
    (file,) = (driven.home / "itself").glob(f"*{part}.trace.json.gz")
    return file


def test_a_request_says_what_became_of_it(driven, way):
    """How it ended, its tokens, those found in the cache, how often it was put back."""
    for answer in said(driven, "answers"):
        info = answer["meta_info"]
        asked = LENGTHS[info["id"]]
        assert info.keys() >= ALWAYS
        assert info["finish_reason"] == {"type": "length", "length": asked}
        assert (info["prompt_tokens"], info["completion_tokens"]) == (3, asked)
        assert len(answer["output_ids"]) == asked
        assert info["num_retractions"] == 0
        assert info["dp_rank"] in ([0, 1] if way == "dp 2" else [None])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "server"])
def test_a_request_that_is_given_up_says_so(drive, way):
    """With the tokens it had got by then; it is answered as all others are."""
    info = said(drive(**WAYS[way]), "lost")["meta_info"]

    assert info.keys() >= ALWAYS
    assert (info["finish_reason"]["type"], info["finish_reason"]["message"]) == ("abort", "Aborted")
    assert 0 < info["completion_tokens"] < 450


def test_a_request_says_when_only_where_metrics_are_kept(driven, way):
    """The times are in order; without `enable_metrics`, there are none but how long it took."""
    for answer in said(driven, "answers"):
        info = answer["meta_info"]
        if way not in WITH_METRICS:
            assert info.keys() & {*TIMES, "queue_time"} == {"response_sent_to_client_ts"}
            continue
        times = [info[name] for name in TIMES]
        assert times == sorted(times)
        assert 0 < info["queue_time"] < info["e2e_latency"]


def test_a_server_says_the_same_with_its_version_and_arguments(drive):
    """`/server_info` holds them beside the states of its schedulers."""
    driven = drive(**WAYS["server"])
    info = said(driven, "info")

    assert (info["version"], info["enable_metrics"]) == (said_version(driven), True)
    assert {"tp_size", "dp_size", "sleep_on_idle", "disable_cuda_graph"} <= info.keys()


def said_version(driven):
    """Return the version as SGLang writes it."""
    return next(one["version"] for one in driven.told if "version" in one)
