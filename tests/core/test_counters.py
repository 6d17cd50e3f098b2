"""Counters over time, and phases and devices of processes, are read as values."""

import ctypes
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

import rlprof
from rlprof.config import Counters
from rlprof.rundir import as_line
from rlprof.types import Target
from rlprof_live._nvml import open_devices
from rlprof_live._sampler import Sampler
from tests.core.steps import record
from tests.core.test_reader import ACTOR, EPOCH, Folder, beginning, event
from tests.fakes import engines
from tests.real_engines import lines
from tests.waiting import wait_until

ENGINE = Target("rollout", replica=1)


def write(folder, name, records):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(map(as_line, records)))


def run_with(tmp_path, name, records, *lines):
    folder = Folder(tmp_path)
    folder.write(*beginning(), *lines, name="actor-0-a-1")
    write(tmp_path, name, records)
    return folder.read()


def test_counters_are_read_on_the_wall_clock(tmp_path):
    """A counter has target, time and values; a selection keeps those of its time."""
    lines = [
        {"mono": 1100, "values": {"rss_bytes": 12}},
        {"mono": 2100, "values": {"kv_cache_use": 0.5}, "target": attrs.asdict(ENGINE)},
        {"mono": 3100, "values": {"rss_bytes": "much"}},
        {"mono": 4100, "values": {"rss_bytes": 13}},
    ]
    run = run_with(tmp_path, "counters/actor-0-a-1.jsonl", lines, event("ended"))
    step = {"kind": "step", "name": "step 1", "step": 1, "id": 1, "t0": 1500, "t1": 2500}
    write(tmp_path, "spans/actor-0-a-1.jsonl", [step])

    found, part = (
        [(one.target, one.time_ns - EPOCH, dict(one.values)) for one in of.counters()]
        for of in (run, run.only(rlprof.Selection(steps=1)))
    )

    engines_own = (ENGINE, 2000, {"kv_cache_use": 0.5})
    assert found == [
        (ACTOR, 1000, {"rss_bytes": 12.0}), engines_own, (ACTOR, 4000, {"rss_bytes": 13.0}),
    ]  # fmt: skip
    assert part == [engines_own]


def test_phases_written_by_a_driver_belong_to_the_member(tmp_path):
    """Phases that a driver writes are of the member, on the run's clock; duplicates count once."""
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


def test_a_process_holds_the_device_of_its_local_rank(config, monkeypatch):
    """Where all ranks see one list of devices, a process holds that of its local rank."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")

    prof = record(config(steps="none"), ())

    (process,) = rlprof.read(prof.run_dir).processes
    assert process.devices == (f"{process.here.host}/cuda:6",)


def gauged(self, handle):
    self.looks += 1
    return {"requests_running": self.looks, "kv_cache_use": handle["use"]}


class Broken:
    """An engine whose counters raise."""

    def counters(self, handle):
        return {"use": handle["nothing"]}


def sampled(file, rule, count, *engine):
    """Run a sampler until it has written *count* lines or ended; return the lines and messages."""
    told = []
    sampler = Sampler(file, rule, told.append)
    if engine:
        sampler.add(Target("rollout", replica=0), *engine)
    wait_until(lambda: len(lines(file)) >= count or not sampler._thread.is_alive())
    sampler.close()
    return lines(file), told


def test_an_engine_whose_counters_raise_is_not_asked_again(tmp_path):
    """An engine whose counters raise is logged once; the process's memory is still counted."""
    found, told = sampled(tmp_path / "c.jsonl", Counters(every_s=0.001), 5, Broken, {})

    now = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert told == ["counters of rollout replica 0: KeyError: 'nothing'"]
    assert {tuple(line["values"]) for line in found} == {("rss_bytes",)}
    assert 0.5 < found[0]["values"]["rss_bytes"] / now < 2
    assert found[0]["mono"] < found[1]["mono"]


def test_counters_end_at_their_bound(tmp_path):
    """Counters end at most one line beyond counters.bytes and log it."""
    file = tmp_path / "c.jsonl"
    found, told = sampled(file, Counters(every_s=0.001, bytes=300), 1000)

    assert 300 < file.stat().st_size < 400
    assert len(found) < 1000
    assert told == ["counters end here: they fill counters.bytes (300)"]


def looks(run_dir):
    return [one for one in rlprof.read(run_dir).counters() if one.target.role == "rollout"]


@pytest.mark.slow
def test_a_session_writes_counters_of_itself_and_its_engines(config, monkeypatch):
    """A session samples one instance of the engine's plugin at the rate for windows."""
    engines.register()
    monkeypatch.setattr(engines.Motor, "counters", gauged, raising=False)
    monkeypatch.setattr(engines.Motor, "looks", 0, raising=False)
    roles = {"actor": {"tool": "none"}, "rollout": {"engine": "motor"}}
    began = time.time_ns()
    often = {"every_s": 60, "in_window_s": 0.001}
    with rlprof.open(config(roles=roles, counters=often), role="actor") as prof:
        prof.attach({"name": "engine 0", "use": 0.25})
        prof.step(1)
        with prof.phase("rollout"):
            wait_until(lambda: len(looks(prof.run_dir)) > 5)

    uses = looks(prof.run_dir)
    assert {one.values["kv_cache_use"] for one in uses} == {0.25}
    numbers = [one.values["requests_running"] for one in uses]
    assert numbers == list(range(1, len(uses) + 1))  # one instance of the plugin is asked
    first = next(iter(rlprof.read(prof.run_dir).counters()))
    assert began - 10**9 < first.time_ns < time.time_ns()


def test_devices_are_those_the_process_sees(monkeypatch):
    """Devices are numbered as the process sees them; there are none without a driver."""
    fake = SimpleNamespace(
        NVMLError=KeyError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 8,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetHandleByUUID=len,
        nvmlDeviceGetUtilizationRates=lambda number: SimpleNamespace(gpu=10 * number),
        nvmlDeviceGetMemoryInfo=lambda number: SimpleNamespace(used=number * 1000),
        nvmlDeviceGetPowerUsage={}.__getitem__,  # which raises
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda _: None)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,GPU-")

    read = open_devices()

    assert read() == {
        "device0_busy": 0.6, "device0_memory_bytes": 6000,
        "device1_busy": 0.4, "device1_memory_bytes": 4000,
    }  # fmt: skip

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)  # though the package is there
    assert open_devices() is None
