"""What was written down of processes by others, and from time to time, as values."""

import attrs

import rlprof
from rlprof.rundir import as_line
from rlprof.types import Target
from tests.core.test_reader import ACTOR, EPOCH, Folder, beginning, event

ENGINE = Target("rollout", replica=1)


def write(folder, name, records):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(map(as_line, records)))


def run_with(tmp_path, name, records, *lines):
    """Write a run of one process, and *records* into its file *name*."""
    folder = Folder(tmp_path)
    folder.write(*beginning(), *lines, name="actor-0-a-1")
    write(tmp_path, name, records)
    return folder.read()


def test_counters_are_read_on_the_wall_clock(tmp_path):
    """A sample says when, of whom, what; a line that is none is passed over."""
    lines = [
        {"mono": 1100, "values": {"rss_bytes": 12}},
        {"mono": 2100, "values": {"kv_cache_use": 0.5}, "target": attrs.asdict(ENGINE)},
        {"mono": 3100, "values": {"rss_bytes": "much"}},
    ]

    run = run_with(tmp_path, "counters/actor-0-a-1.jsonl", lines)

    found = [(one.target, one.time_ns - EPOCH, dict(one.values)) for one in run.counters()]
    assert found == [(ACTOR, 1000, {"rss_bytes": 12.0}), (ENGINE, 2000, {"kv_cache_use": 0.5})]


def test_counters_of_a_part_are_those_of_its_time(tmp_path):
    """A selection leaves out what was read before and after it."""
    lines = [{"mono": 1000 * one, "values": {"rss_bytes": one}} for one in range(1, 5)]
    run = run_with(tmp_path, "counters/actor-0-a-1.jsonl", lines, event("ended"))
    step = {"kind": "step", "name": "step 1", "step": 1, "id": 1, "t0": 1500, "t1": 2500}
    write(tmp_path, "spans/actor-0-a-1.jsonl", [step])

    part = run.only(rlprof.Selection(steps=1))

    assert [one.values["rss_bytes"] for one in part.counters()] == [2.0]


def test_phases_told_by_a_driver_are_the_members(tmp_path):
    """They are on the clock of the run, and those that the member wrote itself count once."""
    offset = event(
        "clock_offset", boot_id="elsewhere", process="actor-0-a-1", offset_ns=5, bound_ns=1
    )
    own = {"kind": "phase", "name": "update", "step": 1, "id": 1, "t0": 1100, "t1": 2100}
    told = {"of": "actor-0-a-1", "kind": "phase", "name": "update", "thread": 0,
            "attributes": {"source": "ray", "call": "Trainer.update"}}  # fmt: skip
    run = run_with(
        tmp_path,
        "spans/+ray-driver-0-a-2.jsonl",
        [
            {**told, "step": 1, "id": 1, "w0": EPOCH + 1005, "w1": EPOCH + 2005},
            {**told, "step": 2, "id": 2, "w0": EPOCH + 3005, "w1": EPOCH + 3105},
            {**told, "step": 2, "id": 3, "w0": EPOCH, "w1": EPOCH, "of": "nobody"},
            {**told, "step": 3, "id": 4},
        ],
        offset,
    )
    write(tmp_path, "spans/actor-0-a-1.jsonl", [own])

    found = [(one.step, one.start_ns - EPOCH, one.end_ns - EPOCH) for one in run.spans()]

    assert found == [(1, 995, 1995), (2, 3000, 3100)]
    assert [one.target for one in run.spans()] == [ACTOR, ACTOR]


def test_devices_are_those_the_launcher_gave(config, monkeypatch):
    """A process of a launcher that gives all the same list holds the one of its local rank."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")

    with rlprof.open(config(steps="none")) as prof:
        pass

    (process,) = rlprof.read(prof.run_dir).processes
    assert process.devices == (f"{process.here.host}/cuda:6",)
