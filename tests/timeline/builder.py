"""Builds run folders with rlprof's own writers, as a session leaves them; reads timelines."""

import gzip
import json
from fractions import Fraction
from typing import Any

import attrs
import pytest

import rlprof
from rlprof import plugins
from rlprof.rundir import Here, Journal, as_line, join, span_record
from rlprof.types import Artifact, Clock, Target, Window
from rlprof_timeline import Timeline
from tests.timeline.layouts import one_line, us

NOW = 1_790_857_026_000_000_000
"""When every run begins, in epoch ns."""


class RunBuilder:
    """A run folder that a test fills, process by process."""

    def __init__(self, root):
        header = {"config": {}, "expected": {}}
        self.path = join(root, Target("driver"), header, env={"RLPROF_RUN_ID": "a-run"}).path
        written = json.loads((self.path / "run.json").read_text())
        written["owner"]["opened_ns"] = NOW
        (self.path / "run.json").write_text(json.dumps(written))

    def process(self, role="actor", rank=0, size=2, host="node-a"):
        return ProcessBuilder(self.path, Target(role, rank, size), host)

    def export(self, out, **options):
        """Export as `rlprof export` does."""
        out.mkdir(exist_ok=True)
        hooks = plugins.hooks(Timeline())
        (file,) = hooks.render(run=rlprof.read(self.path), out=out, options=options)
        assert [file] == list(out.iterdir())
        return file


class ProcessBuilder:
    """One process; it gets times in epoch ns and writes them on its own monotonic clock."""

    def __init__(self, folder, target, host):
        self.name = f"{target.role}-{target.rank}-{host}-{4000 + target.rank}"
        self.folder = folder
        self.booted = NOW - 10**15 - target.rank * 7_000_000_001  # its monotonic clock's zero
        self.manifest = Journal(folder / "manifest" / f"{self.name}.jsonl")
        self.journal = Journal(folder / "spans" / f"{self.name}.jsonl")
        self.ids = 0
        self.artifacts = 0
        self.engine: Target | None = None
        """The target of the next captures; None: the process itself."""
        self.opened: set[tuple[Window, str, Target | None]] = set()
        here = Here(host, f"boot-{host}", "pid:[1]", 4000 + target.rank, "1")
        self.tell("process", target=attrs.asdict(target), here=attrs.asdict(here), versions={})
        for at in (NOW, NOW + 60 * 10**9):
            self.tell("clock", **attrs.asdict(Clock(at, at - self.booted, 150 + target.rank)))
        self.tell("ended")

    def tell(self, event, at=NOW, **fields):
        self.manifest.write([as_line({"event": event, "mono": at - self.booted, **fields})])

    def span(self, kind, name, start, end, *, step=None, parent=None, occurrence=0, **attributes):
        """Write a span, and return its id."""
        self.ids += 1
        start, end = start - self.booted, end - self.booted
        raw = (kind, name, start, end, step, 77, self.ids, parent, occurrence, attributes)
        self.journal.write([as_line(span_record(raw))])
        return self.ids

    def trace(self, window, events, epoch_ns, *, tool="torch", **more):
        header = {"epoch_ns": epoch_ns, "error_ns": 2_000, "clock": "made up", **more}
        return self.artifact(window, as_trace(events, header), tool=tool)

    def artifact(
        self, window, content, *, tool="torch", kind="trace", at=NOW, ns=1_000_000, **known
    ):
        """Record *window* for *ns* into a file with *content*; None: the file is missing."""
        self.artifacts += 1
        suffix = "json.gz" if kind == "trace" else "pickle"
        path = f"{self.name}_{self.artifacts}.{suffix}"
        if content is not None:
            (self.folder / path).write_bytes(content)
        key = self.key(window, tool)
        if (window, tool, self.engine) not in self.opened:
            self.open(window, at, tool=tool)
        self.tell("closed", at + ns, **key, reason="end", seconds=0.0)
        artifact = attrs.asdict(Artifact(path, kind, "any", **known))
        self.tell("artifact", **key, artifact=artifact)
        self.tell("exported", **key, seconds=0.0)
        return path

    def key(self, window, tool):
        whose = {} if self.engine is None else {"target": attrs.asdict(self.engine)}
        return {"window": attrs.asdict(window), "tool": tool, **whose}

    def open(self, window, at, *, tool="torch"):
        key = self.key(window, tool)
        self.opened.add((window, tool, self.engine))
        self.tell("opened", at, **key, scratch="", asked={})
        return key


def as_trace(events, header):
    """Encode a trace; an event that is given as text is inserted unchanged."""
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    head = f'{{"rlprof": {json.dumps(header)}, "schemaVersion": 1, "traceEvents": ['
    return gzip.compress((head + ",".join(texts) + "\n  ]}").encode("utf-8", "surrogatepass"))


class Written:
    """A timeline as a strict JSON reader sees it; every decimal number is an exact fraction."""

    def __init__(self, file):
        self.text = gzip.decompress(file.read_bytes()).decode()
        self.all = json.loads(self.text, parse_float=Fraction, parse_constant=pytest.fail)
        self.about = self.all["rlprof"]
        self.events = [event for event in self.all["traceEvents"] if event["ph"] != "M"]
        self.processes, self.threads, places = {}, {}, {}
        for event in self.all["traceEvents"]:
            if event["name"] == "process_name" and event["ph"] == "M":
                self.processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name" and event["ph"] == "M":
                self.threads[event["pid"], event["tid"]] = event["args"]["name"]
            elif event["name"] == "process_sort_index" and event["ph"] == "M":
                places[event["pid"]] = event["args"]["sort_index"]
        self.order = [self.processes[pid] for pid in sorted(places, key=places.__getitem__)]

    def epoch_ns(self, event):
        """Compute the time of *event* independently of the code under test."""
        return self.about["epoch_ns"] + Fraction(event["ts"]) * 1000

    def named(self, name):
        (event,) = [event for event in self.events if event["name"] == name]
        return event

    def track(self, name):
        """Return the names of the process and the thread of the one event of that name."""
        event = self.named(name)
        thread = self.threads.get((event["pid"], event["tid"]), "")
        return self.processes[event["pid"]], thread


ROLLOUT = Window(2, 3, "rollout")
UPDATE = Window(2, 3, "update_actor")
QUARTER = 7_776_000_000_000_000  # ns: Kineto's ts starts again every three months


def _kineto(mark, at_ns, base_ns):
    """Make a trace like Kineto's, *at_ns* into the run; all have the same pids, tids and ids."""
    start = NOW + at_ns - base_ns
    meta = {"ph": "M", "ts": us(start), "tid": 0}
    cpu = {"pid": 4000, "tid": 4001}
    gpu = {"pid": 0, "tid": 7}
    flow = {"cat": "ac2g", "name": "ac2g", "id": 5}
    events: list[dict[str, Any]] = [
        meta | {"name": "process_name", "pid": 4000, "args": {"name": "python3"}},
        meta | {"name": "process_labels", "pid": 4000, "args": {"labels": "CPU"}},
        meta | {"name": "process_sort_index", "pid": 4000, "args": {"sort_index": 4000}},
        meta | {"name": "process_name", "pid": 0, "args": {"name": "python3"}},
        meta | {"name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
        meta | {"name": "process_sort_index", "pid": 0, "args": {"sort_index": 5000000}},
        meta | {"name": "process_name", "pid": 1, "args": {"name": "an idle GPU"}},
        meta | {"name": "process_uptime_seconds", "pid": 0, "args": {"uptime": 9}},
        meta | {"name": "process_sort_index", "pid": "Spans", "args": {"sort_index": 536870912}},
        meta | cpu | {"name": "thread_name", "args": {"name": "thread 4001 (python3)"}},
        meta | gpu | {"name": "thread_name", "args": {"name": "stream 7"}},
        {"ph": "X", "name": f"kernel {mark}", **gpu, "ts": start + 20_999, "dur": 9_999},
        {"ph": "X", "name": f"op {mark}", **cpu, "ts": start, "dur": 50_001, "args": {"Ev": 1}},
        {"ph": "X", "name": f"launch {mark}", **cpu, "ts": start + 10_007, "dur": 2_003},
        {"ph": "s", **flow, **cpu, "ts": start + 10_007},
        {"ph": "f", **flow, **gpu, "ts": start + 20_999, "bp": "e"},
        {"ph": "X", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "Torch", "ts": start},
        {"ph": "i", "s": "g", "name": f"mark {mark}", **cpu, "ts": start + 60_001},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": start},
    ]
    return [one_line(event) for event in events]


def two_ranks(run):
    """Two ranks on two hosts, two windows each, every trace with a base of its own."""
    for rank in (0, 1):
        process = run.process(rank=rank, host=f"node-{'ab'[rank]}")
        step = process.span("step", "step 2", NOW, NOW + 900_000, step=2)
        for n, window in enumerate((ROLLOUT, UPDATE)):
            at = n * 300_000 + rank * 1_001
            process.span(
                "phase", window.phase, NOW + at, NOW + at + 100_003, step=2, parent=step, tokens=7
            )
            base = (NOW // QUARTER - n - rank) * QUARTER + rank
            process.trace(window, _kineto(f"{rank}.{n}", at, base), base)
