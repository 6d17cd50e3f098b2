"""Faults of torch_npu are found and reported, and spoil only their own window."""

import json
import sys
import types

import pytest

from rlprof import CaptureError
from rlprof_npu import _analysis, _export
from rlprof_npu._library import import_library, refuse_beside_others
from rlprof_npu._options import NpuOptions
from tests.cases import cases
from tests.fakes.torch_npu import analysed

torch = pytest.mark.slow


# failures.md: npu-missing
@torch
def test_a_missing_cann_is_one_sentence(tmp_path, monkeypatch):
    """Where torch_npu cannot be imported, the error names the cause and the remedy."""
    (tmp_path / "torch_npu.py").write_text(
        "try:\n    raise ImportError('libhccl.so: cannot open shared object file')\n"
        "except ImportError as exc:\n    raise RuntimeError('no backend') from exc\n"
    )
    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(CaptureError, match=r"imported: libhccl.so: cannot .*; install CANN"):
        import_library()


# failures.md: npu-missing
@torch
def test_no_device_is_one_sentence(library, home):
    """Without an NPU the tool is refused in one sentence, since torch_npu would record nothing."""
    library.devices = 0

    with pytest.raises(CaptureError, match=r"torch_npu 2\.13\.0 sees no NPU here"):
        home.start()


# failures.md: npu-profiled
def test_another_profiler_is_refused_by_its_variable():
    """A profiler that a variable announces is refused by its name, unless it is off."""
    with pytest.raises(CaptureError, match="PROFILING_MODE is set, so msprof may record too"):
        refuse_beside_others({"PROFILING_MODE": "1"})

    refuse_beside_others({"MSMONITOR_USE_DAEMON": "0", "PROFILING_MODE": ""})


# failures.md: npu-profiled
@torch
@pytest.mark.parametrize("whose", ["torch", "torch_npu"])
def test_a_profiler_of_training_goes_on(library, home, monkeypatch, whose):
    """While training profiles itself the window is refused, and nothing is started."""
    import torch as real

    if whose == "torch":
        monkeypatch.setattr(real.autograd.profiler, "_is_profiler_enabled", True)
    path = types.SimpleNamespace(is_prof_inited=whose == "torch_npu")
    creator = types.SimpleNamespace(ProfPathCreator=types.SimpleNamespace(_instance={1: path}))
    monkeypatch.setitem(sys.modules, "torch_npu.profiler._profiler_path_creator", creator)

    with pytest.raises(CaptureError, match="another profiler of torch or torch_npu is active"):
        home.start()

    assert library.profiles == []


# failures.md: npu-options
@torch
def test_an_old_release_is_asked_what_it_knows(library, home):
    """An old release gets msprof_tx for mstx, and options that it lacks are unsupported."""
    library.be_old()

    options = {"sys_io": True, "host_sys": ("cpu",), "mstx_domain_exclude": ("a",)}
    _, recording = home.start(NpuOptions(contents=("npu", "cpu", "memory"), **options))

    (profile,) = library.profiles
    assert {name for name, value in profile.given.items() if value is True} == {"profile_memory"}
    assert profile.given["experimental_config"].msprof_tx is recording.applied["mstx"] is True
    assert sorted(recording.unsupported) == ["host_sys", "mstx_domain_exclude", "sys_io"]


# failures.md: hook-raised
@torch
def test_a_start_that_fails_silently_is_refused(library, home):
    """torch_npu prints why it did not start and leaves no folder; the next window opens."""
    library.fails_to_start = True
    with pytest.raises(CaptureError, match="torch_npu did not start to record; its output has"):
        home.start()
    library.fails_to_start = False

    home.record()

    assert library.profiles[1].calls == ["start", "step", "stop"]


# failures.md: npu-threads
@torch
@cases(
    "lack, said",
    ("leaves_no_info", "torch_npu did not finish (there is no profiler_info)"),
    ("records_nothing", "no event of the CPU was recorded (FRAMEWORK is empty)"),
)
def test_a_window_that_lacks_something_is_partial(library, home, lack, said):
    """A window that lacks a part is partial, and its notes name the part."""
    setattr(library, lack, True)
    home.record()

    found = home.export()

    assert json.loads((home.raw / "npu.json").read_text())["missing"] == [said]
    assert {one.status for one in found} == {"partial"}
    assert found[0].note.startswith(said)


# failures.md: npu-analysis
@torch
def test_an_incomplete_analysis_makes_the_window_partial(library, home, monkeypatch):
    """An analysis without a table of kernels, or with a cut trace, makes the window partial."""

    def failed(made, timeout_s):
        analysed(made, timeout_s)
        output = made / "ASCEND_PROFILER_OUTPUT"
        (output / "kernel_details.csv").unlink()
        assert not _analysis.missing_of(made, activities=["cpu"], level="level0", exports=["text"])
        trace = output / "trace_view.json"
        trace.write_text(trace.read_text()[:-1])
        return ""

    monkeypatch.setattr(_export, "analyse", failed)
    home.record()

    found = home.export()

    assert {one.status for one in found} == {"partial"}
    assert found[0].note == (
        "torch_npu's analysis failed: it left no kernel_details.csv; trace_view.json has no end, "
        "though torch_npu calls it done"
    )
    assert [one.command for one in found if one.command] == []
    (info,) = [one.path for one in found if one.path.endswith("profiler_info_3.json")]
    assert json.loads((home.out / info).read_text())["rank_id"] == "3"  # in its role, not its job


# failures.md: npu-analysis
@torch
def test_a_killed_window_leaves_its_raw_data(library, home):
    """The raw data of a killed window are kept as partial, with a note."""
    home.start()
    library.profiles[0].step()

    found = home.export()

    assert [(one.format, one.status) for one in found] == [("raw", "partial"), ("json", "partial")]
    assert found[0].note.startswith("the process ended before the window did; these are the raw")
    assert (home.out / found[0].path).read_text().startswith("events")


# failures.md: npu-analysis
def test_an_analysis_has_a_deadline(tmp_path, monkeypatch):
    """An analysis that takes too long is killed, and the reason names the option."""
    monkeypatch.setattr(_analysis, "command", lambda *_: ["sleep", "1000"])
    made = tmp_path / "x_ascend_pt"
    made.mkdir()

    assert _analysis.analyse(made, 0.1) == "it took longer than analysis_timeout_s 0.1"
