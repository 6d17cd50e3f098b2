"""What a window keeps of the requests that leave in it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from rlprof_engine.requests import FILE
from rlprof_sglang._requests import Requests

SAID = {
    "id": "one",
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "num_retractions": 1,
    "finish_reason": {"type": "length", "length": 2},
    "output_token_logprobs": [0.1],
}


class Answer(dict):
    """An answer whose end can be seen."""


@pytest.fixture(name="manager")
def _manager():
    return SimpleNamespace(rid_to_state={})


@pytest.fixture(name="window")
def _window(manager):
    window = Requests(manager, has_metrics=True)
    window.start()
    return window


def left(manager, *, early):
    """Have a request leave as SGLang has it: its answer comes after, or, if *early*, before."""
    state = SimpleNamespace(out_list=[], time_stats=SimpleNamespace(created_time=1.5))
    manager.rid_to_state["one"] = state
    answer = Answer(output_ids=[7, 8], meta_info=SAID)
    if early:
        state.out_list.append(answer)
    del manager.rid_to_state["one"]
    if not early:
        state.out_list.append(answer)
    taken, state.out_list = state.out_list, []
    return taken


@pytest.mark.parametrize("early", [False, True])
def test_a_request_that_leaves_is_told_of(manager, window, tmp_path, early):
    """By its last answer, whenever that comes; who asked gets it as it was."""
    taken = left(manager, early=early)

    window.stop(tmp_path)

    line = json.loads((tmp_path / FILE).read_text().splitlines()[1])
    assert taken == [{"output_ids": [7, 8], "meta_info": SAID}]
    assert line.pop("left") > 0
    assert line == {"id": "one", "prompt_tokens": 3, "tokens": 2, "retractions": 1,
                    "finish": "length", "queued_ts": 1.5}  # fmt: skip
