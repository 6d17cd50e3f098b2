"""Counters of an engine behind HTTP: asked on a thread, told once, and of many schedulers one."""

from __future__ import annotations

import threading
import time

import pytest

from rlprof_engine.told import Told, samples, totals

TEXT = b"""# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 3.0
vllm:num_requests_running{engine="1",model_name="a } b"} 4.0
vllm:num_requests_running_total 9.0
vllm:kv_cache_usage_perc 0.25 1717171717000
vllm:num_requests_waiting{engine="0"} odd
"""


def test_metrics_are_read_by_name_from_prometheus_text():
    """One value for each set of labels; other names, and what is no number, are passed over."""
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")

    assert samples(TEXT, names) == {
        "vllm:num_requests_running": [3.0, 4.0], "vllm:num_requests_waiting": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (([3, 4], [1, 0], [0.2, 0.4]), {"requests_running": 7, "batch_size": 4,
                                        "requests_waiting": 1, "kv_cache_use": pytest.approx(0.3)}),
        (([], [], []), {}),
    ],
    ids=["two schedulers", "nothing known"],
)  # fmt: skip
def test_schedulers_are_one_engine(given, expected):
    """Requests add up, a batch is one scheduler's, the cache is the mean of theirs."""
    assert totals(*given) == expected


def test_nobody_waits_for_a_server():
    """A call returns while the server is asked; what it tells is returned once."""
    may_answer = threading.Event()
    asked = []

    def ask():
        asked.append(1)
        may_answer.wait(30)
        return {"requests_running": 2}

    told = Told(ask)

    assert [told.news(), told.news()] == [{}, {}]
    may_answer.set()
    until = time.monotonic() + 30
    while not (found := told.news()) and time.monotonic() < until:
        time.sleep(0.01)
    assert found == {"requests_running": 2}
    assert told.news() == {}
    assert asked == [1]
