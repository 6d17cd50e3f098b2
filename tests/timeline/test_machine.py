"""What the machine does to an export: it ends its processes, or has no room for the file."""

from __future__ import annotations

import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlprof_timeline import _pool
from tests.timeline.layouts import document
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

COMMAND = [sys.executable, "-m", "rlprof", "export"]
EVENT = '{"ph":"X","name":"a","pid":7,"tid":7,"ts":%d.125,"dur":1,"zz":[0]}'
"""With a member that nobody knows: it takes ten times as long."""
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
    """Export as from a shell; return the command once traces are read, and who reads them."""
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, str(traces)], text=True, **output)
    drafts = "exports/.timeline.json.gz.*/*"
    wait_until(lambda: process.poll() is not None or any(traces.glob(drafts)))
    assert process.poll() is None, process.communicate()[1]
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, owner = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has ended
            continue
        if int(owner) == process.pid and state != "Z":
            found.add(int(stat.parent.name))
    return process, found


# failures.md: export-stopped
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_export_that_is_told_to_end_leaves_nothing(traces, number) -> None:
    """Neither a process nor a draft; the exit code says which signal it was."""
    process, workers = begun(traces)

    process.send_signal(number)
    errors = process.communicate(timeout=BOUND_S)[1]

    assert process.returncode == 128 + number
    told = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert errors.splitlines()[-1] == f"rlprof: {told}"
    assert list((traces / "exports").iterdir()) == []
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


# failures.md: export-stopped
@pytest.mark.slow
@pytest.mark.skipif(_pool._cores() < 2, reason="one process does it")
def test_no_process_outlives_an_export_that_is_killed(traces) -> None:
    """They see that nobody waits for them any more."""
    process, workers = begun(traces)

    process.kill()
    process.communicate(timeout=BOUND_S)  # they hold its stderr

    assert len(workers) == 2
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


# failures.md: export-stopped
@pytest.mark.slow
def test_a_full_disk_is_one_error(traces) -> None:
    """It names the folder and says what to do; no draft is left."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [*COMMAND, str(traces)], capture_output=True, text=True, preexec_fn=bounded
    )

    out = traces / "exports"
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2] == (
        f"rlprof: timeline: {out}: cannot be written to: file too large; "
        "name a folder that has room: --out DIR"
    )
    assert list(out.iterdir()) == []


# failures.md: export-alone
@pytest.mark.slow
@pytest.mark.parametrize("words", [">&- 2>&-", "| true"])
def test_a_timeline_is_made_though_nobody_reads_of_it(tmp_path, words) -> None:
    """Output that is closed, before or meanwhile, costs the words and nothing else."""
    content = document([EVENT % n for n in range(9)], {"baseTimeNanoseconds": 10**18})
    (tmp_path / "rank0.json").write_bytes(content)
    command = shlex.join([*COMMAND, str(tmp_path)])

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} {words}"], capture_output=True, text=True
    )

    assert (done.returncode, "Error" in done.stderr) == (0, False), done.stderr
    assert [file.name for file in (tmp_path / "exports").iterdir()] == ["timeline.json.gz"]


SCRIPT = """
import sys, threading
from pathlib import Path
from rlprof_timeline._loose import of_files
from rlprof_timeline._write import write

threading.Thread(target=threading.Event().wait, args=(9,), daemon=True).start()
folder = Path(sys.argv[1])
print(write(of_files(sorted(folder.glob("*.json"))), folder))
"""


# failures.md: export-alone
@pytest.mark.slow
def test_a_script_that_can_have_no_processes_does_without(traces) -> None:
    """One with threads that came from a pipe cannot be begun a second time."""
    done = subprocess.run(
        [sys.executable, "-", str(traces)],
        input=SCRIPT,
        capture_output=True,
        text=True,
        timeout=5 * BOUND_S,
    )

    assert done.stdout.splitlines()[-1:] == [str(traces / "timeline.json.gz")], done.stderr
