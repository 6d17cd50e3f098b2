"""What rlprof's part in the schedulers says and obeys, and that it does nothing unasked."""

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
    """Every installed plugin is loaded by every SGLang: ours has to be asked for."""
    hooks = sys.modules["sglang.srt.plugins.hook_registry"].HookRegistry.hooks
    hooks.clear()
    monkeypatch.delenv("RLPROF_SGLANG")
    if switch is not None:
        monkeypatch.setenv("RLPROF_SGLANG", switch)

    inside.install()

    assert hooks == {}


def test_it_hooks_the_profiler_and_the_state():
    """SGLang's profiler and the state of a scheduler are hooked, no step is."""
    hooks = sys.modules["sglang.srt.plugins.hook_registry"].HookRegistry.hooks

    assert {target: kind for target, (_, kind) in hooks.items()} == {
        "sglang.srt.managers.scheduler.Scheduler.get_internal_state": "AFTER",
        f"{PROFILER}._profile": "AROUND",
    }


@pytest.mark.parametrize("is_child", [False, True])
def test_it_watches_requests_in_a_process_that_serves(monkeypatch, is_child):
    """SGLang's main process has no parent, or the manager is loaded; there, orders pass it."""
    if is_child:
        monkeypatch.setitem(sys.modules, inside._MANAGER.rpartition(".")[0], ModuleType("m"))
    else:
        monkeypatch.setattr(inside.multiprocessing, "parent_process", lambda: None)
    hooks = sys.modules["sglang.srt.plugins.hook_registry"].HookRegistry.hooks
    hooks.clear()

    inside.install()

    names = {target.rpartition(".")[2] for target in hooks if ".TokenizerManager." in target}
    assert names == {"start_profile", "get_internal_state"}


def test_a_scheduler_we_do_not_know_says_so():
    """What a server says of itself must not fail for us."""
    answer = SimpleNamespace(internal_state={"their": "own"})

    told = inside.describe(answer, SimpleNamespace(ps=SimpleNamespace()))

    assert told.internal_state["their"] == "own"
    assert "AttributeError" in told.internal_state["rlprof"]["error"]


def test_schedulers_are_numbered_by_their_place():
    """Replica of data parallelism by replica, stage by stage, rank by rank: each its own."""
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
    """The ranks of tensor parallelism number them; each is in one replica."""
    found = inside._numbered(SimpleNamespace(**where))

    assert found == (2, {"tp": 2, "pp": 0, "dp": 1})


def test_ranks_are_found_where_the_newest_keep_them(monkeypatch):
    """Since 0.5.21 on nothing of the scheduler's; a rank that was never set is the first."""

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
    """A scheduler that raises ends the engine: the answer says what was wrong."""
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
    """By the name of what it is asked: such a request ends it, any other does not."""
    assert inside._ended_by(type(name, (), {})()) == why
