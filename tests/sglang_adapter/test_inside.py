"""The part of rlprof in the schedulers: what it reports and obeys, and what it hooks."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from rlprof_sglang import inside
from tests.cases import cases
from tests.fakes.sglang_engines import PROFILER, ProfileReq, manager

pytestmark = pytest.mark.usefixtures("inside")


@pytest.mark.parametrize("switch", [None, "0"])
def test_it_does_nothing_where_it_is_not_switched_on(switch, monkeypatch):
    """The plugin installs no hooks unless RLPROF_SGLANG is on."""
    hooks = sys.modules["sglang.srt.plugins.hook_registry"].HookRegistry.hooks
    hooks.clear()
    monkeypatch.delenv("RLPROF_SGLANG")
    if switch is not None:
        monkeypatch.setenv("RLPROF_SGLANG", switch)

    inside.install()

    assert hooks == {}


def test_it_hooks_the_profiler_and_the_state():
    """The plugin hooks a scheduler's profiler and its state, and no step."""
    hooks = sys.modules["sglang.srt.plugins.hook_registry"].HookRegistry.hooks

    assert {target: kind for target, (_, kind) in hooks.items()} == {
        "sglang.srt.managers.scheduler.Scheduler.get_internal_state": "AFTER",
        f"{PROFILER}._profile": "AROUND",
    }


@pytest.mark.parametrize("is_child", [False, True])
def test_it_watches_requests_in_a_process_that_serves(monkeypatch, is_child):
    """The plugin hooks TokenizerManager in SGLang's main process, or where that is loaded."""
    if is_child:
        monkeypatch.setitem(sys.modules, inside._MANAGER.rpartition(".")[0], ModuleType("m"))
    else:
        monkeypatch.setattr(inside.multiprocessing, "parent_process", lambda: None)
    hooks = sys.modules["sglang.srt.plugins.hook_registry"].HookRegistry.hooks
    hooks.clear()

    inside.install()

    names = {target.rpartition(".")[2] for target in hooks if ".TokenizerManager." in target}
    assert names == {"start_profile", "get_internal_state"}


def test_an_unknown_scheduler_reports_an_error():
    """The state of an unknown scheduler keeps SGLang's entries and has rlprof's error."""
    answer = SimpleNamespace(internal_state={"their": "own"})

    told = inside.describe(answer, SimpleNamespace(ps=SimpleNamespace()))

    assert told.internal_state["their"] == "own"
    assert "AttributeError" in told.internal_state["rlprof"]["error"]


def test_schedulers_are_numbered_by_their_place():
    """Schedulers are numbered by DP replica, then by pipeline stage, then by TP rank."""
    schedulers = manager(tp=2, pp=2, dp=2).replica.schedulers

    numbers = [one.get_internal_state().internal_state["rlprof"]["number"] for one in schedulers]

    assert numbers == [0, 1, 2, 3, 4, 5, 6, 7]


RANKS = {"tp_rank": 2, "tp_size": 4, "pp_rank": 0, "pp_size": 1, "dp_rank": 1, "dp_size": 2}
RESOLVED = RANKS | {"dp_size": 1, "attn_dp_size": 2, "enable_dp_attention": False}  # since 0.5.22
HAS_IT = SimpleNamespace(enable_dp_attention=True)


@pytest.mark.parametrize(
    "where",
    [{"ps": SimpleNamespace(**RANKS, **vars(HAS_IT))}, {"ps": SimpleNamespace(**RESOLVED)},
     {"ps": SimpleNamespace(**RANKS), "server_args": HAS_IT}],
)  # fmt: skip
def test_with_dp_attention_replicas_are_made_of_the_same_ranks(where):
    """With DP attention a scheduler has the number of its TP rank, and keeps its DP rank."""
    found = inside._numbered(SimpleNamespace(**where))

    assert found == (2, {"tp": 2, "pp": 0, "dp": 1})


def test_ranks_are_read_from_the_runtime_context(monkeypatch):
    """Ranks come from the runtime context of SGLang 0.5.21 or newer; an unset one counts as 0."""

    class Parallel:
        tp_rank, tp_size, pp_rank, pp_size, dp_size = 1, 2, 0, 1, 1

        @property
        def dp_rank(self):
            raise RuntimeError("dp_rank is not set")

    context = ModuleType("sglang.srt.runtime_context")
    context.get_parallel = Parallel
    monkeypatch.setitem(sys.modules, "sglang.srt.runtime_context", context)

    assert inside._numbered(SimpleNamespace()) == (1, {"tp": 1, "pp": 0, "dp": 0})


@pytest.mark.parametrize("text", ["{", '{"order": "x"}'])
def test_an_order_that_cannot_be_obeyed_is_answered(text):
    """An invalid order does not raise; its answer is `failed` with the reason."""
    (scheduler,) = manager().replica.schedulers
    scheduler.get_internal_state()

    answer = scheduler.part._profile(ProfileReq(output_dir=f"rlprof:{text}"))

    said = json.loads(scheduler.get_internal_state().internal_state["rlprof"]["answer"])
    assert answer.success
    assert said["state"] == "failed"
    assert said["why"]


# failures.md: sglang-cut
@cases(
    "name, why",
    ("UpdateWeightsFromTensorReqInput", "update weights from tensor"),
    ("ReleaseMemoryOccupationReqInput", "release memory occupation"),
    ("TokenizedGenerateReqInput", ""),
)
def test_a_window_ends_where_a_scheduler_is_given_weights(name, why):
    """Requests that update weights or release memory end a window; others do not."""
    assert inside._ended_by(type(name, (), {})()) == why
