"""Exports of cut or damaged files, and exports that are ended or run out of disk space."""

import gzip
import json
import resource
import shlex
import signal
import subprocess
import sys
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlprof_timeline import _pool
from rlprof_timeline._loose import of_files
from rlprof_timeline._write import write
from rlprof_traces import UnreadableError
from tests.timeline.builder import Written
from tests.timeline.layouts import LAYOUTS, document, read
from tests.waiting import python, wait_until

pytestmark = pytest.mark.slow

SIZES = st.sampled_from([64, 300, 5000, 1 << 20])
FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
HEAD = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000}
TAIL = ', "traceName": "a}]}", "logs": [{"name": "x"}, {"name": "y"}]'


def an_event(nth: int, *, nested: bool = False) -> dict[str, Any]:
    """Make an event with a unique name."""
    args: dict[str, Any] = {"External id": nth, "text": 'a "quoted\\" },{ ]'}
    if nested:
        args["frames"] = [{"name": f"frame {n}", "line": n} for n in range(12)]
    return {
        "ph": "X", "cat": "cpu_op", "name": f"op {nth}", "pid": 7, "tid": 7,
        "ts": nth * 1000, "dur": 500, "args": args,
    }  # fmt: skip


def whole(content: bytes, encoded: list[str]) -> list[str]:
    """Return the names of the events that are complete in the cut *content*."""
    found, at = [], 0
    for nth, event in enumerate(encoded):
        at = content.find(event.encode(), at)
        if at < 0:
            break
        at += len(event.encode())
        found.append(f"op {nth}")
    return found


# failures.md: trace-damaged
@pytest.mark.parametrize("layout", ["kineto", "compact"])
@FIXTURE
@given(cut=st.integers(0, 10**6), size=SIZES, nested=st.booleans(), is_packed=st.booleans())
def test_events_before_a_cut_arrive(layout, tmp_path, *, cut, size, nested, is_packed) -> None:
    """Whole events before a cut are read, packed or not, and the file is reported as cut."""
    encoded = [LAYOUTS[layout](an_event(nth, nested=nested)) for nth in range(20)]
    content = document(encoded, HEAD, TAIL)
    head = content.index(b"[") + 1
    if is_packed:
        packed = gzip.compress(content)
        packed = packed[: 3 + cut % (len(packed) - 3)]
        content, given = zlib.decompressobj(31).decompress(packed), packed
    else:
        content = given = content[: 1 + cut % (len(content) - 1)]
    expected = whole(content, encoded)

    if len(content) < head or not content:
        with pytest.raises(UnreadableError, match=r"^is cut short$"):
            read(given, tmp_path, size)
        return
    events, text, place = read(given, tmp_path, size)

    assert ([event["name"] for event in events], text.problems) == (expected, ["is cut short"])
    assert (text.dropped <= 1, place.untimed) == (True, 0)


NESTED = json.dumps(an_event(99, nested=True)).encode()
GARBAGE = {
    "an unescaped quote": b'{"ph": "X", "name": "a"b", "pid": 1, "tid": 1, "ts": 1, "dur": 1}',
    "no closing quote": b'{"ph": "X", "name": "a, "pid": 1, "tid": 1, "ts": 1, "dur": 1}',
    "no closing brace": b'{"ph": "X", "name": "bad", "pid": 1, "tid": 1, "ts": 1, "dur": 1',
    "brackets": b"}]}]}]}}]",
    "zeros": bytes(50),
}
"""Bytes that are no event, in the place of one."""
ODD = {
    "NaN": b'{"ph": "X", "name": "bad", "pid": 1, "tid": 1, "ts": 1, "dur": NaN}',
    "a line feed": b'{"ph": "X", "name": "bad\n", "pid": 1, "tid": 1, "ts": 1, "dur": 1}',
    "bad UTF-8, nested": NESTED.replace(b"frame 11", b"\xe9"),
    "no comma behind": json.dumps(an_event(98)).encode() + NESTED,
}
"""Events that are not strict JSON."""


# failures.md: trace-damaged
@pytest.mark.parametrize("layout", ["kineto", "compact"])
@pytest.mark.parametrize("where", [0, 19])
def test_one_bad_event_loses_no_other(layout, where, tmp_path) -> None:
    """A bad event anywhere in a file loses no other event, and dropped ones are counted."""
    events = [an_event(nth, nested=nth % 3 == 0) for nth in range(20)]
    encoded = [LAYOUTS[layout](event) for event in events]
    around = document([*encoded[:where], "@", *encoded[where:]], HEAD, TAIL)
    expected = [event["name"] for event in events]

    for (odd, bad), size in product({**GARBAGE, **ODD}.items(), (64, 5000)):
        found, text, place = read(around.replace(b"@", bad), tmp_path, size)
        names = [event["name"] for event in found]

        assert [name for name in names if name in expected] == expected, (odd, size)
        assert (text.problems, text.tail["logs"]) == ([], [{"name": "x"}, {"name": "y"}])
        if odd in GARBAGE:
            assert text.dropped + place.untimed > 0 or "bad" in names
        else:
            assert (text.dropped, place.untimed) == (0, 0)
            assert len(names) == 20 + bad.count(b'"ph"')


BASE = HEAD["baseTimeNanoseconds"]


def a_slice(name: str, ts_ns: int) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 7, "tid": 7, "ts": ts_ns, "dur": 1_000}


GOOD = document([LAYOUTS["compact"](a_slice(f"good {n}", n * 10_000)) for n in range(50)], HEAD)
FINE = [LAYOUTS["compact"](a_slice("fine", n * 1_000)) for n in range(30)]
WHOLE = document(FINE, HEAD)
FILES: dict[str, tuple[bytes, int, list[str]]] = {
    "with a mark of its order": (b"\xef\xbb\xbf" + WHOLE, 30, []),
    "of CRLF": (document(list(map(LAYOUTS["kineto"], [a_slice("fine", 0)] * 30)), HEAD)
                .replace(b"\n", b"\r\n"), 30, []),
    "packed in two members": (gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:]), 30, []),
    "packed and cut": (gzip.compress(WHOLE)[:-4], 30, ["is cut short"]),
    "zeros": (bytes(999_999), 0, ["is no JSON"]),
    "a word for the events": (b'{"traceEvents": "none"}', 0, ["has no traceEvents"]),
    "two of them": (WHOLE + WHOLE, 30, ["what follows its events is no JSON"]),
}  # fmt: skip


# failures.md: trace-damaged
@pytest.mark.parametrize("name", FILES)
def test_a_malformed_file_spoils_no_other(name, tmp_path) -> None:
    """Readable events of a malformed file are shown with all of a good one; its fault is named."""
    content, fine, wrong = FILES[name]
    files = [tmp_path / "bad.json", tmp_path / "good.json"]
    for file, text in zip(files, (content, GOOD), strict=True):
        file.write_bytes(text)

    written = Written(write(of_files(files), tmp_path))

    good = [event for event in written.events if event["name"].startswith("good")]
    assert [written.epoch_ns(event) - BASE for event in good] == [n * 10_000 for n in range(50)]
    told = [one["reason"] for one in written.about["left_out"]]
    for source in written.about["sources"]:
        told += source["problems"][:-1] if source["file"] == "bad.json" else []
    assert sum(event["name"] == "fine" for event in written.events) == fine
    assert (set(wrong) <= set(told), bool(told)) == (True, bool(wrong))


COMMAND = [sys.executable, "-m", "rlprof", "export"]
EVENT = '{"ph":"X","name":"a","pid":7,"tid":7,"ts":%d.125,"dur":1,"zz":[0]}'
"""With an unknown member, which makes its export ten times as slow."""
BOUND_S = 60


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Two traces that keep two processes busy for a second or more."""
    folder = tmp_path / "traces"
    folder.mkdir()
    content = document([EVENT % n for n in range(250_000)], {"baseTimeNanoseconds": 10**18})
    for rank in (0, 1):
        (folder / f"rank{rank}.json").write_bytes(content)
    return folder


def begun(traces: Path) -> tuple[subprocess.Popen[str], set[int]]:
    """Start an export; return it and the pids of its workers once they read traces."""
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, str(traces)], text=True, **output)
    drafts = "exports/.timeline.json.gz.*/*"
    wait_until(lambda: process.poll() is not None or any(traces.glob(drafts)))
    assert process.poll() is None, process.communicate()[1]
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return process, {int(child) for child in children.split()}


# failures.md: export-stopped
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_export_that_a_signal_ends_leaves_nothing(traces, number) -> None:
    """After SIGTERM or Ctrl-C no process and no draft remain; the exit code names the signal."""
    process, workers = begun(traces)

    process.send_signal(number)
    errors = process.communicate(timeout=BOUND_S)[1]

    assert process.returncode == 128 + number
    told = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert errors.splitlines()[-1] == f"rlprof: {told}"
    assert list((traces / "exports").iterdir()) == []
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


# failures.md: export-stopped
@pytest.mark.skipif(_pool._cores() < 2, reason="one process does it")
def test_no_process_outlives_an_export_that_is_killed(traces) -> None:
    """The workers of an export end after their parent is killed."""
    process, workers = begun(traces)

    process.kill()
    process.communicate(timeout=BOUND_S)  # the workers hold its stderr

    assert len(workers) == 2
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


# failures.md: export-stopped
def test_a_full_disk_is_one_error(traces) -> None:
    """A full disk is one error with the folder and the remedy, and no draft remains."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = python(*COMMAND[1:], traces, preexec_fn=bounded)

    out = traces / "exports"
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2] == (
        f"rlprof: timeline: {out}: cannot be written to: file too large; "
        "name a folder that has room: --out DIR"
    )
    assert list(out.iterdir()) == []


# failures.md: export-alone
@pytest.mark.parametrize("words", [">&- 2>&-", "| true"])
def test_a_closed_output_does_not_stop_an_export(tmp_path, words) -> None:
    """An export whose output is closed, before or during it, still writes the timeline."""
    content = document([EVENT % n for n in range(9)], {"baseTimeNanoseconds": 10**18})
    (tmp_path / "rank0.json").write_bytes(content)
    command = shlex.join([*COMMAND, str(tmp_path)])

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} {words}"], capture_output=True, text=True
    )

    assert (done.returncode, "Error" in done.stderr) == (0, False), done.stderr
    assert [file.name for file in (tmp_path / "exports").iterdir()] == ["timeline.json.gz"]
