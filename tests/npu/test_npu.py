"""The tool on a thin torch_npu: what it asks of the library, and what it makes of its silence."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata

import pytest

from rlprof import Capture, CaptureError, Target, Window
from rlprof_npu import Npu, _export
from rlprof_npu._library import Overheard, experimental, import_library, refuse_beside_others
from rlprof_npu._options import NpuOptions
from tests.fakes.torch_npu import FakeNpu, analysed

WINDOW, TARGET = Window(7, 8, "update_actor"), Target("actor", 3, 8)

torch = pytest.mark.slow


@pytest.fixture(name="library")
def _library(monkeypatch):
    fake = FakeNpu()
    fake.install(monkeypatch)
    monkeypatch.setattr(_export, "analyse", analysed)
    return fake


def started(options=None):
    """Return a tool that has begun."""
    tool = Npu()
    tool.configure("process", options or NpuOptions())
    return tool


@torch
def test_a_window_is_one_step_of_the_library(library, tmp_path):
    """The profiler gets a schedule of one step with the trainer's number, and ends by it."""
    tool = started()
    tool.start(WINDOW, TARGET, tmp_path)
    tool.stop()

    (profile,) = library.profiles
    assert profile.calls == ["start", "step", "stop"]
    assert profile.actions == ["save", "none"]
    assert profile.step_num == 7


@torch
def test_each_window_has_a_profiler_of_its_own(library, tmp_path):
    """A second window has a new object and a new handler, made right before it starts."""
    tool = started()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        tool.start(WINDOW, TARGET, tmp_path / name)
        tool.stop()

    assert len(library.profiles) == 2
    assert library.profiles[0].given["schedule"] is not library.profiles[1].given["schedule"]
    assert library.where == str(tmp_path / "two")


@torch
def test_the_notes_are_there_before_the_end(library, tmp_path):
    """What salvage needs is on disk while the window is open: config, clocks, rank."""
    started().start(WINDOW, TARGET, tmp_path)

    notes = json.loads((tmp_path / "npu.json").read_text())
    assert notes["config"]["common_config"]["activities"] == ["NPU", "CPU"]
    assert notes["start_info"]["start_monotonic"] == 0
    assert notes["rank"] == 3
    assert "sizes" not in notes


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
def test_phases_are_closed_at_the_end(library, tmp_path):
    """Ranges are in our domain, without quotes, and none is left open by a window cut short."""
    tool = started()
    recording = tool.start(WINDOW, TARGET, tmp_path)
    recording.push("update_actor", {"step": 7, "occurrence": 0})
    recording.push('a "b" \\ c', {})
    recording.pop()
    tool.stop()

    assert library.marks.calls == [("update_actor", "rlprof"), ("a 'b' / c", "rlprof")]
    assert library.marks.open == {}


@torch
def test_an_old_release_is_asked_what_it_knows(library, tmp_path):
    """Fields are found by signature: mstx becomes msprof_tx, and what is not there is said."""
    library.be_old()
    options = NpuOptions(sys_io=True, host_sys=("cpu",), mstx_domain_exclude=("a",))

    recording = started(options).start(WINDOW, TARGET, tmp_path)

    (profile,) = library.profiles
    assert profile.given["experimental_config"].msprof_tx is True
    assert sorted(recording.unsupported) == ["cpu", "host_sys", "mstx_domain_exclude", "sys_io"]


def test_every_field_is_given_by_name(library):
    """Metrics and export are always said, and our domain belongs to those that are included."""
    options = NpuOptions(mstx_domain_include=("mine",), export_type=("db", "text"))

    fields, lacks = experimental(library.module.profiler, options)

    assert lacks == {}
    assert fields == {
        "profiler_level": "Level0",
        "aic_metrics": "none",
        "export_type": ["db", "text"],
        "data_simplification": True,
        "mstx": True,
        "mstx_domain_include": ["mine", "rlprof"],
    }


def test_a_threshold_of_zero_is_given(library):
    """`gc_detect_threshold: 0` asks for all collections, and is not taken for nothing."""
    fields, _ = experimental(library.module.profiler, NpuOptions(gc_detect_threshold=0.0))

    assert fields["gc_detect_threshold"] == 0.0


@torch
def test_a_mode_that_is_not_ours_is_said(library, tmp_path):
    """Verl's `discrete: false` in a window of a phase is recorded, and said not to be so."""
    recording = started(NpuOptions(discrete=False)).start(WINDOW, TARGET, tmp_path)

    assert recording.unsupported == {
        "discrete": "windows are made by the config; set mode: continuous"
    }


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


@torch
def test_no_library_is_one_sentence(monkeypatch):
    """Without torch_npu it is said what to install."""
    monkeypatch.setitem(sys.modules, "torch_npu", None)

    with pytest.raises(CaptureError, match="install"):
        import_library()


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


def test_a_monitor_that_is_off_is_none():
    """A variable that says 0 or nothing announces nobody."""
    assert refuse_beside_others({"MSMONITOR_USE_DAEMON": "0", "PROFILING_MODE": ""}) is None


def test_what_is_printed_goes_on(capsys):
    """Overheard, output still goes where it was going, and only errors are kept."""
    with Overheard() as heard:
        print("hello")
        print("[now] [ERROR] [1] profiler.py: Call stop failed.")

    assert heard.errors == ["Call stop failed."]
    assert capsys.readouterr().out == ("hello\n[now] [ERROR] [1] profiler.py: Call stop failed.\n")


def test_importing_the_plugin_leaves_torch_alone():
    """It asks for nothing that it drives: `import torch` of who installs it is as before."""
    wanted = [one for one in metadata.requires("rlprof-npu") if "extra" not in one]
    offered = metadata.distribution("rlprof-npu").entry_points

    assert sorted(re.match(r"[\w-]+", one)[0] for one in wanted) == ["attrs", "rlprof"]
    assert {one.group for one in offered} == {"rlprof.tools"}


CAPTURE = Capture("run", TARGET, WINDOW, "npu", "vm", 1)


def exported(tmp_path):
    """Record a window, and export it."""
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    out.mkdir()
    tool = started()
    tool.start(WINDOW, TARGET, raw)
    tool.stop()
    return Npu().export(CAPTURE, raw, out), out


@torch
def test_ranks_lie_by_the_number_in_their_role(library, tmp_path):
    """The library's rank is another: its file gets ours, in name and content."""
    found, out = exported(tmp_path)

    (info,) = [one.path for one in found if "profiler_info" in one.path]
    assert info == (f"{CAPTURE.stem}_20261122204800427_ascend_pt/profiler_info_3.json")
    assert json.loads((out / info).read_text())["rank_id"] == "3"


@torch
def test_a_whole_window_names_its_command(library, tmp_path):
    """Every artifact is whole, and the first says what looks at all ranks of the window."""
    found, _ = exported(tmp_path)

    assert {one.status for one in found} == {"whole"}
    assert [one.kind for one in found] == ["trace", "files", "files", "files"]
    assert [one.command for one in found if one.command] == [
        "msprof-analyze cluster -d {run}/step_000007/update_actor"
    ]


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


@torch
def test_raw_data_that_were_cut_are_said(library, tmp_path):
    """A raw file that is shorter than the window left it makes a part of it."""
    raw = tmp_path / "raw"
    raw.mkdir()
    tool = started()
    tool.start(WINDOW, TARGET, raw)
    tool.stop()
    (file,) = raw.glob("*_ascend_pt/FRAMEWORK/torch.op_range")
    file.write_text("half")

    found = Npu().export(CAPTURE, raw, tmp_path)

    assert found[0].status == "partial"
    assert found[0].note == "raw data were lost after the window had ended"
