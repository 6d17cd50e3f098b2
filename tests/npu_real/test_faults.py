"""What goes wrong is said, and never reaches training."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import rlprof
from rlprof_run.salvage import salvage
from tests.npu_real.programs import OPERATORS
from tests.npu_real.test_end_to_end import opened

pytestmark = pytest.mark.slow

HANDED_ON = "stopped on another thread than it began on, which had ended or did not come by"
TRIES = 6
"""torch_npu writes nothing to disk before the end in about half of all runs."""


def adds_of(run, capture):
    """Return how many additions are in the trace of *capture*."""
    return sum(one["name"] == "aten::add" for one in opened(run, capture)["traceEvents"])


def test_a_killed_window_of_the_device_gives_what_the_host_has(drive):
    """Where CANN cannot read what it has not finished, the host's events are there."""
    for _ in range(TRIES):
        killed = drive("be_killed", {"contents": ["cpu", "npu"]}, with_msprof=False)
        found = list(killed.home.rglob("FRAMEWORK/torch.op_range"))
        if found and found[0].stat().st_size:
            break
    else:
        pytest.skip(f"torch_npu wrote nothing to disk before the end in {TRIES} runs")

    list(salvage(killed.run, timeout_s=600))

    run = rlprof.read(killed.run.path)
    (capture,) = run.captures
    assert capture.state == "partial"
    assert "the host alone is here" in " ".join(capture.notes)
    assert adds_of(run, capture) >= 0.99 * OPERATORS * 10


def test_a_failed_analysis_is_found_out(drive):
    """An analysis without msprof leaves `analyse.done` and a cut trace; the window is partial."""
    done = drive("train", {"contents": ["cpu", "npu"]}, with_msprof=False)

    (capture,) = done.run.captures
    notes = " ".join(capture.notes)
    assert done.returncode == 0
    assert capture.state == "partial"
    assert "'msprof' command not found" in notes
    assert "kernel_details.csv" in notes
    assert "trace_view.json has no end, though torch_npu calls it done" in notes
    assert list(done.home.rglob("raw/*_ascend_pt/FRAMEWORK/torch.op_range"))
    assert list(done.home.rglob("raw/*_ascend_pt/PROF_*/device_0"))


def test_an_analysis_has_a_deadline(drive):
    """One that takes longer than it may is ended with all it has started, and raw data are kept."""
    done = drive("train", {"contents": ["cpu"], "analysis_timeout_s": 0.2})

    (capture,) = done.run.captures
    assert "analysis_timeout_s 0.2" in " ".join(capture.notes)
    assert capture.state == "failed"
    assert list(done.home.rglob("raw/*_ascend_pt/FRAMEWORK/torch.op_range"))


def test_a_profiler_of_training_goes_on(drive, tmp_path):
    """While training profiles itself the window is refused, and training's own loses nothing."""
    done = drive("beside", {"contents": ["cpu"]}, env={"OWN": str(tmp_path / "own")})

    (capture,) = done.run.captures
    own = [line for line in done.output.splitlines() if line.startswith("own ")]
    assert capture.state == "failed"
    assert "another profiler of torch or torch_npu is active" in " ".join(capture.notes)
    assert int(own[0].split()[1]) > 0


def test_a_profiler_that_training_begins_in_a_window_is_told(drive, tmp_path):
    """torch_npu lets two record and says nothing; both lose events, so the window is a part."""
    done = drive("inside", {"contents": ["cpu"]}, env={"OWN": str(tmp_path / "own")})

    told = [(one.state, " ".join(one.notes)) for one in done.run.captures]
    assert done.returncode == 0
    assert [state for state, _ in told] == ["partial", "whole"]
    assert "training used a profiler of torch_npu in the window" in told[0][1]


def test_a_forked_child_ends_as_it_would(drive):
    """In a window and after it, by its own exit status; bare torch_npu hangs, or is aborted."""
    done = drive("forking", {"contents": ["cpu", "npu"], "analysis": "none"})

    assert [line for line in done.output.splitlines() if "child" in line] == ["child 3"] * 4
    assert done.returncode == 0
    assert [one.state for one in done.run.captures] == ["whole", "whole"]


def test_dynamic_profile_is_refused(drive, tmp_path):
    """With torch_npu's dynamic_profile in the process, no window opens."""
    done = drive("dynamic", {"contents": ["cpu"]}, env={"OWN": str(tmp_path / "own")})

    said = " ".join(note for one in done.run.captures for note in one.notes)
    assert "dynamic_profile was started in this process" in said + " ".join(done.run.problems)
    assert done.reached == [] or done.calls("aclprofStart") == []


def test_ranges_end_where_training_fails(drive):
    """A phase left by an exception leaves no range open, and the window is recorded."""
    done = drive("fail", {"contents": ["npu", "cpu"], "level": 1})

    starts = [line.split(" ")[1] for line in done.reached if line.startswith("mstx.start")]
    ends = [line.split(" ")[1] for line in done.reached if line.startswith("mstx.end")]
    assert done.returncode == 0
    assert sorted(starts) == sorted(ends)
    assert [one.state for one in done.run.captures] == ["whole"]


def test_windows_after_one_whose_thread_has_ended_are_their_own(drive):
    """Ended on another thread it has all of its events, and the next windows have none of them."""
    done = drive("handed_on", {"contents": ["cpu", "npu"]})

    found = [(one.state, adds_of(done.run, one)) for one in done.run.captures]
    assert done.returncode == 0
    assert found == [("partial", OPERATORS), ("whole", OPERATORS), ("whole", OPERATORS)]
    assert HANDED_ON in " ".join(done.run.captures[0].notes)


def test_training_goes_on_without_cann(drive):
    """Where CANN's libraries are missing training runs unrecorded, and one sentence says why."""
    done = drive("torch_alone", {"contents": ["cpu"]}, env={"LD_LIBRARY_PATH": ""})

    (capture,) = done.run.captures
    assert "trained" in done.output
    assert done.returncode == 0
    assert capture.state == "failed"
    assert "libhccl.so: cannot open shared object file" in capture.notes[0]
    assert capture.notes[0].endswith("install CANN and source its set_env.sh before the run")


DOCTOR = "import sys; from rlprof_cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_missing_cann_is_one_sentence(tmp_path):
    """Without CANN `rlprof doctor` says so of the tool, with what to do, and shows no traceback."""
    config = {
        "run_dir": str(tmp_path), "tool": "npu", "steps": [1], "roles": {"actor": {}},
    }  # fmt: skip
    file = tmp_path / "profile.yaml"
    file.write_text(json.dumps(config))
    env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}

    done = subprocess.run(
        [sys.executable, "-c", DOCTOR, "doctor", str(file)],
        env=env, capture_output=True, text=True,
    )  # fmt: skip

    lines = [line for line in done.stdout.splitlines() if "tool npu" in line]
    assert len(lines) == 1, done.stdout
    assert "libhccl.so: cannot open shared object file" in lines[0]
    assert "install CANN and source its set_env.sh" in lines[0]
    assert lines[0].startswith("BAD")
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_records_a_dry_window(tmp_path):
    """With CANN, or what stands in for it, the doctor records a window."""
    config = {
        "run_dir": str(tmp_path), "tool": "npu", "steps": [1], "roles": {"actor": {}},
        "tools": {"npu": {"contents": ["cpu"]}},
    }  # fmt: skip
    file = tmp_path / "profile.yaml"
    file.write_text(json.dumps(config))

    done = subprocess.run(
        [sys.executable, "-c", DOCTOR, "doctor", str(file)], capture_output=True, text=True
    )

    lines = [line for line in done.stdout.splitlines() if "tool npu" in line]
    assert len(lines) == 1, done.stdout
    assert lines[0].startswith("ok")
