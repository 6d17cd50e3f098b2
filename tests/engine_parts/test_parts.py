"""What the engines share: iterations, wrapped methods, answers and counters."""

import asyncio
import io
import struct
import sys
import threading
import time
from types import SimpleNamespace
from urllib.error import HTTPError, URLError

import pytest

from rlprof import CaptureError, Workers
from rlprof_engine.answers import answers_in, beyond_native, choose, fewer, other_number
from rlprof_engine.counters import Polled, samples
from rlprof_engine.http import Http
from rlprof_engine.iterations import Iterations
from rlprof_engine.wrapped import Wrapped
from rlprof_sglang import _counters as sglang
from rlprof_vllm import _counters as vllm
from tests.cases import cases


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"count": 0}, "expected at least 1, got 0"), ({"skip": -1}, "expected at least 0, got -1")],
)
def test_invalid_iterations_are_refused(asked, why):
    """A count of 0 and a negative skip are refused."""
    with pytest.raises(ValueError, match=why):
        Iterations(**asked)


class Motor:
    def run(self, speed):
        return speed


class Slots:
    __slots__ = ()

    def run(self, speed):
        return speed


def test_wrapped_methods_are_restored():
    """`take_back` restores methods of a class or an object, unless others wrapped them since."""
    plain, own, other = Motor(), Motor(), Motor()
    own.run = lambda speed: -speed
    wrapped = Wrapped()
    for motor in (plain, own, other):
        wrapped.put(motor, "run", lambda inner, speed: inner(speed) * 10)
    own.speed, fixed = 3, Slots()
    for owner, name in ((own, "no_such"), (own, "speed"), (fixed, "run")):
        wrapped.put(owner, name, lambda *_: "ours")
    during = [motor.run(2) for motor in (plain, own, other, fixed)]
    inner = other.run
    other.run = lambda speed: inner(speed) + 1

    wrapped.take_back()

    assert during == [20, -20, 20, 2]
    assert (plain.run(2), own.run(2), other.run(2)) == (2, -2, 21)
    assert (vars(plain), own.speed, hasattr(own, "no_such")) == ({}, 3, False)


def test_answers_are_sorted_by_their_state():
    """Answers in the wanted state are returned; an error has the reasons if all have failed."""
    recording, refused = {"state": "recording"}, {"state": "refused", "why": "no disk"}
    other = {"state": "not chosen"}

    assert answers_in([recording, refused], "recording", "x") == [recording]
    assert answers_in([other, refused], "recording", "x") == []
    with pytest.raises(CaptureError, match="x: no disk"):
        answers_in([refused], "recording", "x")


def test_an_address_without_a_scheme_is_refused():
    """An address without a scheme is refused with the correct form."""
    with pytest.raises(
        CaptureError, match=r"^motor: 'box:80' is not an address; write http://box:80"
    ):
        Http("motor", "box:80", lambda *_: CaptureError("refused"))


def failed(code):
    return HTTPError("http://a:1/x", code, "", None, io.BytesIO(b"not so"))


@cases(
    "answer, told",
    (b'{"a": 1}', {"a": 1}),
    (b"started", "started"),
    (b" ", None),
    (failed(404), "absent"),
    (failed(409), CaptureError("/x 409 not so")),
    (URLError("refused"), CaptureError("motor: http://a:1 does not answer: ")),
)
def test_the_answer_of_a_server_is_read_or_refused(monkeypatch, answer, told):
    """An answer is read as JSON or text; a missing path has a default, a refusal is an error."""

    def urlopen(request, timeout):
        assert (request.full_url, request.get_method()) == ("http://a:1/x", "POST")
        assert (request.headers["Authorization"], request.data) == ("k", b'{"b": 2}')
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    refusal = lambda *said: CaptureError(" ".join(map(str, said)))  # noqa: E731
    ask = Http("motor", "http://a:1/", refusal, {"Authorization": "k"}).ask

    if isinstance(told, CaptureError):
        with pytest.raises(CaptureError, match=f"^{told}"):
            asyncio.run(ask("POST", "/x", {"b": 2}, missing="absent"))
        return
    assert asyncio.run(ask("POST", "/x", {"b": 2}, missing="absent")) == told


TEXT = b"""# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 3.0
vllm:num_requests_running{engine="1",model_name="a } b"} 4.0
vllm:num_requests_running_total 9.0
vllm:kv_cache_usage_perc 0.25 1717171717000
vllm:num_requests_waiting{engine="0"} odd
"""


def test_metrics_are_read_by_name_from_prometheus_text():
    """Each set of labels gives one value; other names and invalid numbers are skipped."""
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")

    assert samples(TEXT, names) == {
        "vllm:num_requests_running": [3.0, 4.0], "vllm:num_requests_waiting": [],
    }  # fmt: skip


def test_polling_does_not_wait_for_a_server():
    """`news` returns at once while a server is asked, and returns its answer once."""
    may_answer = threading.Event()
    asked = []

    def ask():
        asked.append(1)
        may_answer.wait(30)
        return {"requests_running": 2}

    told = Polled(ask)

    assert [told.news(), told.news()] == [{}, {}]
    may_answer.set()
    until = time.monotonic() + 30
    while not (found := told.news()) and time.monotonic() < until:
        time.sleep(0.01)
    assert found == {"requests_running": 2}
    assert told.news() == {}
    assert asked == [1]


@pytest.mark.parametrize("asked", ["auto", "worker", "native"])
@pytest.mark.parametrize("inside", ["", "no plugin"])
@pytest.mark.parametrize("native", ["", "no profiler"])
def test_the_way_that_was_asked_for_is_taken_or_refused(asked, inside, native):
    """The way asked for is taken or refused with the reasons; `auto` prefers the workers."""
    possible = [
        way
        for way, why in (("worker", inside), ("native", native))
        if not why and asked in ("auto", way)
    ]

    both = ("workers", inside), ("mini's", native)
    if possible:
        assert choose("mini", asked, ["torch"], *both) == possible[0]
        return
    with pytest.raises(CaptureError, match="mini: this engine cannot be recorded") as refused:
        choose("mini", asked, ["torch"], *both)
    told = str(refused.value)
    assert ("no plugin" in told) == (bool(inside) and asked != "native")
    assert ("no profiler" in told) == (bool(native) and asked != "worker")


@cases(
    "ranks, chosen, has_others, chooses",
    ((), (), False, False),
    ((0, 1), (0, 1), False, False),
    ((0,), (0,), True, False),
    ((0, 1), (0,), False, True),
)
def test_ranks_that_cannot_be_recorded_are_named(ranks, chosen, has_others, chooses):
    """Ranks that do not fit the engine, or that its own profiler cannot choose, are named."""
    workers = Workers(tools={"torch": {}, "nsys": {}}, ranks=ranks, chosen=chosen)

    assert list(other_number(2, workers, "workers")) == ["attach: ranks"] * has_others
    assert list(beyond_native(workers, "workers", "mini's")) == ["nsys", *["ranks"] * chooses]


@pytest.mark.parametrize(
    ("count", "steps", "is_told"),
    [(None, 3, False), (5, None, False), (5, 0, False), (5, 5, False), (5, 4, True), (5, 1, True)],
)
def test_a_process_that_recorded_fewer_steps_than_asked_is_named(count, steps, is_told):
    """A process with fewer steps than asked for is named, unless it ran none."""
    options = {} if count is None else {"iterations": {"count": count}}

    told = fewer(options, [("worker 0", steps)])

    assert [one.startswith(f"worker 0: {steps} of the {count}") for one in told] == [True] * is_told


def things(**said):
    """Make an object with attributes from nested dictionaries."""
    return SimpleNamespace(**{k: things(**v) if k in _INNER else v for k, v in said.items()})


_INNER = {"llm_engine", "output_processor", "engine_core", "scheduler", "kv_cache_manager",
          "logger_manager", "tokenizer_manager", "load_snapshot_reader"}  # fmt: skip
TOTALS = {"requests_running": 2, "batch_size": 2, "requests_waiting": 1, "kv_cache_use": 0.5}


def gauge(value):
    return {0: SimpleNamespace(_value=SimpleNamespace(get=lambda: value))}


def test_vllms_counters_are_those_of_its_scheduler_or_its_gauges():
    """Counters of vLLM come from its scheduler or its gauges; an idle engine counts 0."""
    names = ("gauge_scheduler_running", "gauge_scheduler_waiting", "gauge_kv_cache_usage")
    gauges = dict(zip(names, map(gauge, (2, 1, 0.5)), strict=True))
    ours = SimpleNamespace(**gauges)
    odd = SimpleNamespace(**gauges | {names[0]: {0: SimpleNamespace()}})
    few = SimpleNamespace(**{names[0]: gauge(9)})
    busy = {"output_processor": {"request_states": {"a": 1}}}
    states = {"running": [1, 2], "waiting": [1], "kv_cache_manager": {"usage": 0.5}}
    here = busy | {"engine_core": {"engine_core": {"scheduler": states}}}
    apart = {"logger_manager": {"stat_loggers": [few, odd, ours]}}
    idle = {"output_processor": {"request_states": {}}}

    assert vllm.kept(things(llm_engine=here)) == {"requests_in_flight": 1} | TOTALS
    assert vllm.kept(things(**busy | apart)) == {"requests_in_flight": 1} | TOTALS
    assert vllm.kept(things(**busy)) == {"requests_in_flight": 1}
    assert vllm.kept(things(**idle | apart)) == dict.fromkeys(["requests_in_flight", *TOTALS], 0)
    assert vllm.kept(things()) == {}


def loads(*rows, magic=b"SLNS", length=12, size=20):
    slots = [struct.pack("<I", length) + struct.pack("<fff", *row) + b"...." for row in rows]
    return struct.pack("<4sHHI", magic, 1, len(rows), size) + b"".join(slots)


@pytest.mark.parametrize(
    ("written", "found"),
    [(loads((2, 1, 0.5)), TOTALS), (loads(), {}),
     (loads((2, 1, 0.25), (1, 1, 0.75)), {**TOTALS, "requests_running": 3, "requests_waiting": 2}),
     (loads((2, 1, 0.5), magic=b"...."), {}), (loads((2, 1, 0.5), length=0), {}),
     (loads((2, 1, 0.5), length=17), {}), (b"", {})],
    ids=["one", "none", "two", "another file", "before it is written", "too long", "empty"],
)  # fmt: skip
def test_sglangs_counters_are_what_its_schedulers_publish(tmp_path, monkeypatch, written, found):
    """SGLang's counters come from its schedulers' snapshot, those of requests from its frontend."""
    (tmp_path / "load").write_bytes(written)
    names = ("num_running_reqs", "num_waiting_reqs", "token_usage")
    decode = lambda data: things(**dict(zip(names, struct.unpack_from("<fff", data), strict=True)))  # noqa: E731
    manager = {"rid_to_state": {"a": 1}, "load_snapshot_reader": {"path": str(tmp_path / "load")}}
    unknown = {**manager, "load_snapshot_reader": {"path": None}}
    handle, alone = things(tokenizer_manager=manager), {"requests_in_flight": 1}

    assert sglang.kept(handle) == alone
    module = SimpleNamespace(snapshot_decoder=SimpleNamespace(decode=decode))
    monkeypatch.setitem(sys.modules, "sglang.srt.managers.load_snapshot", module)
    assert sglang.kept(handle) == alone | found
    assert sglang.kept(things(**unknown)) == alone
    assert sglang.kept(things()) == {}


@pytest.mark.parametrize("first", [b"vllm:num_requests_running 2.0\n", b""])
def test_a_server_is_asked_for_few_metrics_or_for_all(monkeypatch, first):
    """A server of vLLM is asked for the metrics in use, and for all if it returns none of them."""
    urls = []

    def fetched(url):
        urls.append(url.removeprefix("http://a:1"))
        both = b"vllm:num_requests_running 2.0\nsglang:num_queue_reqs 3.0\n"
        return first if "name[]" in url else b"{}" if "loads" in url else both

    monkeypatch.setattr(vllm, "fetched", fetched)
    monkeypatch.setattr(sglang, "fetched", fetched)

    assert vllm.asked("http://a:1") == {"requests_running": 2.0, "batch_size": 2.0}
    assert urls[0].startswith("/metrics?name[]=vllm:num_requests_running&name[]=")
    assert urls[1:] == ([] if first else ["/metrics"])
    assert sglang.asked("http://a:1") == {"requests_waiting": 3.0}
