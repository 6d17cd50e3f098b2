"""Clocks of hosts are aligned by collectives, or checked against them."""

import random

import pytest

from rlprof.types import Window
from rlprof_timeline._events import moved
from rlprof_timeline._place import Place
from rlprof_timeline._tracks import Tracks
from tests.cases import cases
from tests.timeline.builder import NOW, UPDATE, ProcessBuilder, RunBuilder, Written
from tests.timeline.layouts import LAYOUTS, document

MS = 1_000_000
APART_NS = 4_500_000
MANY = 10


def collectives(late_ns=0, name="gloo:all_reduce", count=MANY, waits_ns=0):
    """Make collectives of 2 ms, every 10 ms, that end *late_ns* late and begin *waits_ns* early."""
    begin, dur = late_ns - waits_ns, 2 * MS + waits_ns
    return [
        {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": n * 10 * MS + begin, "dur": dur}
        for n in range(count)
    ]


def meet(process: ProcessBuilder, late_ns: int = 0, layout: str = "kineto", **kinds) -> None:
    events = collectives(late_ns, **kinds)
    process.trace(UPDATE, [LAYOUTS[layout](event) for event in events], NOW)


def two_hosts(run, late_ns=APART_NS, host="node-1", **kinds):
    """Let two ranks meet, each on a host of its own; the first waits. Return the second."""
    meet(run.process(rank=0, host="node-0"), waits_ns=MS, **kinds)
    second = run.process(rank=1, host=host)
    second.span("step", "step 1 of node-1", NOW + late_ns, NOW + late_ns + 100 * MS, step=1)
    meet(second, late_ns, **kinds)
    return second


def begin(written: Written, name: str) -> int:
    return int(written.epoch_ns(written.named(name)) - NOW)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["barrier", "ncclDevKernel_AllReduce_Sum"])
def test_a_host_whose_collectives_end_late_is_moved(run, write, capsys, layout, name) -> None:
    """Spans and traces of a host are moved by how late its collectives end, not begin."""
    two_hosts(run, layout=layout, name=name)

    written = write()

    assert begin(written, "step 1 of node-1") == 0
    met = [event for event in written.events if event["name"] == name]
    ends = sorted(written.epoch_ns(event) + event["dur"] * 1000 for event in met)
    assert ends[::2] == ends[1::2]
    (clock,) = written.about["check"]["clocks"]
    assert (clock["host"], clock["reference"], clock["moved"]) == ("node-1", "node-0", True)
    assert (clock["ahead_ns"], clock["collectives"]) == (APART_NS, MANY)
    assert written.about["method"] == "wall clock of each host, moved by collectives"
    assert (
        "timeline: node-1: its 10 collectives end 4.500 ms after those of node-0, give or take "
        "1.004 ms: moved"
    ) in capsys.readouterr().out


def test_eight_hosts_stand_on_one_clock(tmp_path, caplog) -> None:
    """Offsets of up to 5 s and a drift of 50 ppm are found to within 0.1 ms and 1 ppm."""
    rng = random.Random(19)  # noqa: S311 -- the same in each run
    run = RunBuilder(tmp_path / "runs")
    true = [(0, 0.0)]
    true += [(rng.randrange(-5_000 * MS, 5_000 * MS), 5e-5 * (-1) ** n) for n in range(7)]

    def shown(host: int, at: int) -> int:
        ahead, drift = true[host]
        return NOW + at + ahead + round(drift * at)

    for host in range(8):
        process = run.process(rank=host, size=8, host=f"node-{host}")
        for step in range(4):
            start = step * 60_000 * MS
            times = shown(host, start), shown(host, start + 1_000 * MS)
            process.span("step", f"step {step}.{host}", *times, step=step)
            events = []
            for n in range(20):
                end = shown(host, start + n * 10 * MS) - NOW + round(rng.expovariate(1 / 50_000))
                one = {"ph": "X", "name": "gloo:all_reduce", "pid": 7, "tid": 7, "dur": MS}
                events.append(LAYOUTS["kineto"](one | {"ts": end - MS}))
            process.trace(Window(step, step + 1, "update"), events, NOW)

    written = Written(run.export(tmp_path / "out"))

    assert len(written.about["check"]["clocks"]) == 7
    for step in range(4):
        begins = [begin(written, f"step {step}.{host}") - step * 60_000 * MS for host in range(8)]
        assert [at for at in begins if abs(at) > 100_000] == []
    drifts = [clock["drift_ppm"] for clock in written.about["check"]["clocks"]]
    assert drifts == [pytest.approx(drift * 1e6, abs=1) for _, drift in true[1:]]
    assert caplog.messages == []


@pytest.mark.parametrize(
    "kinds",
    [{"count": 7}, {"name": "gloo:broadcast"}, {"name": "nccl:all_reduce"}, {"host": "node-0"}],
)
def test_no_clock_is_compared_on_weak_evidence(run, write, caplog, kinds) -> None:
    """Few collectives, mere launches, or late threads of one host are no evidence of a clock."""
    two_hosts(run, **kinds)

    written = write()

    assert written.about["check"] == {"clocks": []}
    assert begin(written, "step 1 of node-1") == APART_NS
    assert caplog.messages == []


@cases(
    "late_ns, align, shown_ns, told",
    (300_000, "auto", 300_000, ""),
    (300_000, "collectives", 0, ""),
    (APART_NS, "wall", APART_NS, "clocks of the hosts disagree, and the timeline with them"),
)
def test_clocks_are_moved_only_with_reason(
    run, tmp_path, caplog, capsys, *, late_ns, align, shown_ns, told
) -> None:
    """A small difference is removed only by `align: collectives`; `align: wall` moves nothing."""
    two_hosts(run, late_ns)

    written = Written(run.export(tmp_path / "out", align=align))

    assert begin(written, "step 1 of node-1") == shown_ns
    assert [words.count(told) for words in caplog.messages] == [1] * bool(told)
    if align == "auto":
        assert "collectives of 2 hosts end within 0.300 ms" in capsys.readouterr().out


def test_a_clock_that_the_fleet_measured_is_not_moved(run, write, caplog) -> None:
    """A clock that the driver has measured is not moved; a disagreement is logged."""
    second = two_hosts(run)
    second.tell("clock_offset", boot_id="boot-node-1", process="", offset_ns=MS, bound_ns=9)

    written = write()

    assert begin(written, "step 1 of node-1") == APART_NS - MS
    assert [told.partition(": ")[0] for told in caplog.messages] == ["node-1"]


def test_files_of_unknown_hosts_are_moved_only_on_request(tmp_path, caplog, capsys) -> None:
    """A file of an unknown host causes a warning, and is moved only by `--align collectives`."""
    from rlprof_cli import main

    for rank, late_ns in enumerate((0, APART_NS, 3_600_000 * MS)):
        early = {"ph": "X", "name": "early", "pid": 7, "tid": 7, "ts": MS * rank, "dur": 1}
        texts = [LAYOUTS["one line"](event) for event in [*collectives(late_ns), early]]
        (tmp_path / f"rank{rank}.json").write_bytes(document(texts, {"baseTimeNanoseconds": NOW}))
    command = ["export", str(tmp_path), "--out", str(tmp_path / "out")]

    assert main(command) == 0
    (told,) = [words for words in caplog.messages if "collectives" in words]
    assert "error unknown for 3 of 3 traces" in capsys.readouterr().out
    (tmp_path / "rank2.json").unlink()  # its step is another one
    assert main([*command, "--align", "collectives"]) == 0

    assert told == (
        "rank1.json: its 10 collectives end 4.500 ms after those of rank0.json, give or take "
        "1.000 ms: they are of two hosts whose clocks disagree; to move it: --align collectives"
    )
    written = Written(tmp_path / "out" / "timeline.json.gz")
    assert written.about["check"]["clocks"][0]["moved"] is True
    starts = [written.epoch_ns(event) - NOW for event in written.events]
    assert min(starts) == MS - APART_NS
    assert 0 < min(event["ts"] for event in written.events) <= 2


def test_collectives_of_two_groups_are_kept_apart() -> None:
    """A collective is identified by its name and the process group in its arguments."""
    place, name = Place(0, Tracks("", 100_000, 1), 100_000), "ncclDevKernel_AllReduce_Sum"
    args = {"Process Group Name": "3", "Process Group Ranks": "[0, 8]"}
    moved(LAYOUTS["compact"](collectives(name=name, count=1)[0] | {"args": args}).encode(), place)

    assert [met for met, _, _ in place.meetings] == ["ncclDevKernel_AllReduce_Sum 3 0, 8"]


@cases("args, whole", (b"", "barrier"), (b'{"Process Group Name": "dp"}', "barrier dp"))
def test_the_first_collectives_of_each_name_and_group_are_kept(args, whole):
    """Only the first 128 collectives of a name and group are kept, which bounds the memory."""
    place = Place(shift_ns=0, tracks=None, prefix=100_000)

    for at in range(300):
        place.met("barrier", at, 1, args)

    assert place.meetings == [(whole, at, 1) for at in range(128)]
