"""Stands in for CANN's `msprof`: it makes up the tables of ten kernels, at the end of the window.

torch_npu calls it with `--export=on` or `--analyze=on` and `--output=PROF_FOLDER`, and reads what
it leaves there, which is invented here.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

KERNELS = 10
LENGTH_NS = 20_000
APART_NS = 100_000
LINGERS_S = 0.5  # torch_npu looks every 0.1 s, and gives up if msprof ends before it sees a table
END_NS = 400_000_000  # how long before the end the first is called, within the step
PROCESSES = ((1, "CANN", "CPU"), (2, "Ascend Hardware", "NPU 0"), (3, "Overlap Analysis", "NPU 0"))


def microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def export(prof: Path) -> None:
    """Leave a timeline and a table of kernels."""
    (file,) = prof.parent.glob("profiler_info*.json")
    end = json.loads(file.read_text())["end_info"]
    # torch_npu reads the host's times from a clock that is not slewed, its end from one that is.
    apart = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - time.monotonic_ns()
    ended = end["collectionTimeEnd"] + apart
    events = []
    for pid, name, label in PROCESSES:
        events += [
            {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}},
            {"name": "process_labels", "ph": "M", "pid": pid, "tid": 0, "args": {"labels": label}},
        ]
    rows = []
    for number in range(KERNELS):
        called = ended - END_NS + number * APART_NS
        ran = called + 50_000
        flow = {"cat": "HostToDevice", "name": "HostToDevice", "id": str(number)}
        both = {"ts": microseconds(ran), "dur": LENGTH_NS / 1000, "args": {}}
        events += [
            {"name": "AscendCL@aclnnAdd", "ph": "X", "pid": 1, "tid": 1, **both,
             "ts": microseconds(called)},
            {**flow, "ph": "s", "pid": 1, "tid": 1, "ts": microseconds(called)},
            {**flow, "ph": "f", "bp": "e", "pid": 2, "tid": 7, "ts": microseconds(ran)},
            {"name": f"Add_{number}", "ph": "X", "pid": 2, "tid": 7, **both},
            {"name": "Computing", "ph": "X", "pid": 3, "tid": 0, **both},
        ]  # fmt: skip
        rows.append({
            "Device_id": 0, "Op Name": f"Add_{number}", "OP Type": "Add", "Task Type": "AI_CORE",
            "Task Start Time(us)": f"{microseconds(ran)}\t", "Task Duration(us)": LENGTH_NS / 1000,
            "Task Wait Time(us)": 0, "Block Num": 8,
        })  # fmt: skip
    out = prof / "mindstudio_profiler_output"
    out.mkdir(exist_ok=True)
    (out / "msprof_20260101000000.json").write_text(json.dumps(events))
    draft = out / "op_summary.draft"
    with draft.open("w", newline="") as table:
        writer = csv.DictWriter(table, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    draft.rename(out / "op_summary_20260101000000.csv")  # torch_npu goes on as soon as it is there
    time.sleep(LINGERS_S)


def analyze(prof: Path) -> None:
    """Leave the tables of communication, without any."""
    out = prof / "analyze"
    out.mkdir(exist_ok=True)
    for name in ("communication", "communication_matrix"):
        (out / f"{name}.json").write_text("{}")


if __name__ == "__main__":
    asked = sys.argv[1:]
    if "--help" in asked:
        print("usage: msprof --export=on|off --analyze=on|off --output=FOLDER")
        sys.exit(0)
    (output,) = [Path(one.partition("=")[2]) for one in asked if one.startswith("--output=")]
    (export if "--export=on" in asked else analyze)(output)
