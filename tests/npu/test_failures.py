"""What goes wrong with torch_npu is found out, said, and costs nothing but its window."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from pathlib import Path

import pytest

import rlprof
from rlprof import CaptureError
from rlprof_npu import Npu, _analysis, _export, _raw
from rlprof_npu._library import import_library, refuse_beside_others
from rlprof_npu._options import NpuOptions
from tests.fakes.torch_npu import analysed
from tests.npu.windows import CAPTURE, TARGET, WINDOW, exported, recorded, started

torch = pytest.mark.slow


@torch
def test_no_library_is_one_sentence(monkeypatch):
    """Without torch_npu it is said what to install."""
    monkeypatch.setitem(sys.modules, "torch_npu", None)

    with pytest.raises(CaptureError, match="install"):
        import_library()


@torch
def test_no_device_is_one_sentence(library):
    """Without an NPU the library profiles nothing, so it is refused when it is configured."""
    library.devices = 0

    with pytest.raises(CaptureError) as caught:
        started()

    assert str(caught.value) == (
        "npu: torch_npu 2.13.0 sees no NPU here, without which it profiles nothing, the CPU "
        "included; leave npu out of this role, or look at npu-smi info"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PROFILING_MODE", "so msprof records this process"),
        ("PROFILER_SAMPLECONFIG", "so msprof records this process"),
        ("MSMONITOR_USE_DAEMON", "so msmonitor may start a profiler"),
        ("KINETO_USE_DAEMON", "so msmonitor may start a profiler"),
        ("PROF_CONFIG_PATH", "so torch_npu's dynamic_profile may start a profiler"),
    ],
)
def test_other_profilers_are_refused_by_their_variables(name, words):
    """A profiler that the environment announces is named, with what to do."""
    with pytest.raises(CaptureError, match=f"{name} is set, {words}"):
        refuse_beside_others({name: "1"})


@torch
def test_an_old_release_is_asked_what_it_knows(library, tmp_path):
    """Fields are found by signature: mstx becomes msprof_tx, and what is not there is said."""
    library.be_old()
    options = NpuOptions(sys_io=True, host_sys=("cpu",), mstx_domain_exclude=("a",))

    recording = started(options).start(WINDOW, TARGET, tmp_path)

    (profile,) = library.profiles
    assert profile.given["experimental_config"].msprof_tx is True
    assert sorted(recording.unsupported) == ["cpu", "host_sys", "mstx_domain_exclude", "sys_io"]


@torch
def test_a_start_that_fails_silently_is_refused(library, tmp_path):
    """The library prints why it did not start; the window says it, and the next one opens."""
    tool = started()
    library.fails_to_start = True

    with pytest.raises(CaptureError) as caught:
        tool.start(WINDOW, TARGET, tmp_path)

    assert str(caught.value) == (
        "torch_npu did not start to record: Call start failed. Exception: no room"
    )
    library.fails_to_start = False
    tool.start(WINDOW, TARGET, tmp_path)
    tool.stop()
    assert library.profiles[1].calls == ["start", "step", "stop"]


@torch
def test_what_is_missing_is_said(library, tmp_path):
    """A window the library did not finish is noted as such."""
    tool = started()
    library.leaves_no_info = True
    tool.start(WINDOW, TARGET, tmp_path)
    tool.stop()

    notes = json.loads((tmp_path / "npu.json").read_text())
    assert notes["missing"] == ["torch_npu did not finish (there is no profiler_info)"]


@torch
def test_a_phase_that_another_thread_leaves_is_ended_by_its_own(library, tmp_path):
    """Nobody else calls torch_npu; when its own thread comes by the window ends, and says so."""
    config = {
        "run_dir": str(tmp_path / "runs"),
        "scratch_dir": str(tmp_path / "scratch"),
        "tool": "npu",
        "steps": [1],
        "roles": {"actor": {}},
        "tools": {"npu": {"analysis": "none"}},
    }
    with rlprof.open(config, role="actor") as prof:
        prof.step(1)
        phase = prof.phase("update_actor")
        phase.__enter__()
        leaver = threading.Thread(target=phase.__exit__, args=(None, None, None))
        leaver.start()
        leaver.join()
        (profile,) = library.profiles
        before = list(profile.calls)
        prof.step(2)

    (capture,) = rlprof.read(prof.run_dir).captures
    assert before == ["start"]
    assert profile.calls == ["start", "step", "stop"]
    assert profile.threads == {threading.get_ident()}
    assert capture.state == "whole"
    assert capture.notes[0].startswith("closed late: it ended on another thread")


@torch
def test_a_window_without_an_event_of_the_host_is_partial(library, tmp_path):
    """An empty FRAMEWORK is noticed when the window ends, and said with what there is."""
    library.records_nothing = True

    found, _ = exported(tmp_path)

    assert {one.status for one in found} == {"partial"}
    assert found[0].note.startswith("no event of the CPU was recorded (FRAMEWORK is empty)")


@torch
def test_no_room_for_notes_is_one_sentence(library, tmp_path, monkeypatch):
    """On a full disk the window does not open, and the next one does."""
    tool, wrote = started(), Path.write_text

    def full(path, *given, **more):
        if path.name.startswith("npu.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return wrote(path, *given, **more)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CaptureError) as caught:
        tool.start(WINDOW, TARGET, tmp_path)
    monkeypatch.undo()
    library.install(monkeypatch)
    tool.start(WINDOW, TARGET, tmp_path)
    tool.stop()

    assert str(caught.value) == f"{tmp_path} takes no notes: No space left on device"
    assert library.profiles[-1].calls == ["start", "step", "stop"]


@pytest.fixture(name="lost")
def _lost(monkeypatch):
    """Return what this process cannot record any more: nothing yet, and nothing after the test."""
    lost = {}
    monkeypatch.setattr("rlprof_npu._left_open._lost", lost)
    return lost


def _stopped_elsewhere(tool, folder, break_it=lambda: None):
    """Begin a window on a thread, break something, and end it on this one."""
    folder.mkdir()
    one = threading.Thread(target=tool.start, args=(WINDOW, TARGET, folder))
    one.start()
    one.join()
    break_it()
    tool.stop()


@torch
def test_what_another_thread_has_begun_is_ended(library, tmp_path, lost):
    """Stopped on another thread, the library is made to stop there what it had left running."""
    tool = started(NpuOptions(contents=("cpu",)))

    _stopped_elsewhere(tool, tmp_path / "one")

    assert library.profiles[0].calls == ["start", "step", "stop", "start_trace", "stop_trace"]
    assert library.profiles[0].prof_if.activities == set()
    assert lost == {}


@torch
def test_what_cannot_be_ended_on_another_thread_is_never_begun_again(library, tmp_path, lost):
    """A release that cannot be made to records no window more in this process, and why is said."""
    tool = started(NpuOptions(contents=("cpu",)))

    _stopped_elsewhere(
        tool, tmp_path / "one", lambda: delattr(library.profiles[0].prof_if, "stop_trace")
    )

    assert set(lost) == {"cpu", "npu"}
    with pytest.raises(CaptureError, match=r"did not end: .*stop_trace.*records no more windows$"):
        tool.start(WINDOW, TARGET, tmp_path)
    assert len(library.profiles) == 1


@torch
def test_stacks_are_not_asked_for_after_a_thread_has_ended(library, tmp_path, lost):
    """Python's calls are followed no more here, and windows without stacks go on."""
    _stopped_elsewhere(started(NpuOptions(contents=("cpu", "stack"))), tmp_path / "one")

    with pytest.raises(CaptureError, match="leave out stack and module, or start anew"):
        started(NpuOptions(contents=("cpu", "module"))).start(WINDOW, TARGET, tmp_path)
    plain = started(NpuOptions(contents=("cpu",)))
    plain.start(WINDOW, TARGET, tmp_path)
    plain.stop()
    assert library.profiles[1].calls == ["start", "step", "stop"]
    assert set(lost) == {"stack", "module"}


@torch
def test_an_analysis_that_calls_itself_done_is_looked_at(library, tmp_path, monkeypatch):
    """Without a table of kernels, or with a trace without an end, the window is partial."""

    def failed(made, timeout_s):
        analysed(made, timeout_s)
        output = made / "ASCEND_PROFILER_OUTPUT"
        (output / "kernel_details.csv").unlink()
        trace = output / "trace_view.json"
        trace.write_text(trace.read_text()[:-1])
        return ""

    monkeypatch.setattr(_export, "analyse", failed)

    found, _ = exported(tmp_path)

    assert {one.status for one in found} == {"partial"}
    assert found[0].note == (
        "torch_npu's analysis failed: it left no kernel_details.csv; trace_view.json has no end, "
        "though torch_npu calls it done"
    )
    assert [one.command for one in found if one.command] == []


@torch
def test_raw_data_that_were_cut_are_said(library, tmp_path):
    """A raw file that is shorter than the window left it makes a part of it."""
    raw, out = recorded(tmp_path)
    (file,) = raw.glob("*_ascend_pt/FRAMEWORK/torch.op_range")
    file.write_text("half")

    found = Npu().export(CAPTURE, raw, out)

    assert found[0].status == "partial"
    assert found[0].note == "raw data were lost after the window had ended"


def odd(file):
    """Put a FIFO in the place of *file*."""
    file.unlink()
    os.mkfifo(file)


def emptied(file):
    """Put a folder in the place of *file*."""
    file.unlink()
    file.mkdir()


@torch
@pytest.mark.parametrize("put", [odd, emptied])
@pytest.mark.parametrize("name", ["profiler_info_3.json", "FRAMEWORK/torch.op_range"])
def test_what_is_no_file_is_not_read(library, tmp_path, put, name):
    """Something else has a raw file's name: the window is partial, and nobody waits for it."""
    raw, out = recorded(tmp_path)
    (made,) = raw.glob("*_ascend_pt")
    file = _raw.info_of(made) if name.startswith("profiler_info") else made / name
    put(file)

    found = Npu().export(CAPTURE, raw, out)

    assert {one.status for one in found} == {"partial"}
    assert found[0].note.startswith("raw data were lost after the window had ended")


@torch
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", None), ("applied", {"activities": 1}), ("marks", [[1]]), ("analysis", None),
        ("timeout_s", 1e400), ("export_type", [None]), ("clock", "x"), ("config", []),
        ("start_info", 1), ("missing", {}), ("said", [1]), ("sizes", {"x": None}),
    ],
)  # fmt: skip
def test_damaged_notes_are_one_sentence(library, tmp_path, name, value):
    """What is in them that cannot be is named, for each of the things that an export needs."""
    raw, out = recorded(tmp_path)
    notes = json.loads((raw / "npu.json").read_bytes())
    (raw / "npu.json").write_text(json.dumps({**notes, name: value}))

    with pytest.raises(CaptureError) as caught:
        Npu().export(CAPTURE, raw, out)

    start = f"the notes of this window are damaged ({name}), so its raw data cannot be read"
    assert str(caught.value) == start


@torch
def test_notes_that_are_no_file_are_one_sentence(library, tmp_path):
    """A FIFO of that name is not waited for."""
    raw, out = recorded(tmp_path)
    odd(raw / "npu.json")

    with pytest.raises(CaptureError, match="the notes of this window cannot be read"):
        Npu().export(CAPTURE, raw, out)


def test_of_a_log_without_end_the_beginning_is_read(tmp_path, monkeypatch):
    """The first error counts; what is printed for hours after it is not taken into memory."""
    prints = "print('[ERROR] x.py: the reason'); print('y' * 9_000_000)"
    monkeypatch.setattr(_analysis, "command", lambda *_: [sys.executable, "-c", prints])
    read = []
    monkeypatch.setattr(_analysis, "first_error", lambda text: read.append(text) or "told")
    made = tmp_path / "x_ascend_pt"
    made.mkdir()

    assert _analysis.analyse(made, 60) == "told"
    assert (tmp_path / "analysis.log").stat().st_size > 9_000_000
    assert [len(text) for text in read] == [4 << 20]
    assert read[0].startswith("[ERROR] x.py: the reason")
