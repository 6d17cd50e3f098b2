"""What is said of the options of `sglang` before there is an engine, on this host."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from rlprof import Advice
from rlprof_cli import main
from rlprof_sglang import Sglang, SglangOptions, _beforehand

TORCH = {"torch": {}}


def misfits(options):
    """Return what is advised on the host alone."""
    return Sglang.advise(options, TORCH, on_host=True)[1:]


@pytest.fixture(name="host")
def _host(monkeypatch):
    """Return a function that makes this a host with SGLang, and with CUDA or without."""

    def host(*, cuda=False):
        torch = ModuleType("torch")
        torch.__spec__ = ModuleSpec("torch", None)
        torch.cuda = SimpleNamespace(is_available=lambda: cuda)
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setattr(_beforehand, "sources_here", lambda: "somewhere")

    return host


@pytest.mark.parametrize(
    ("activities", "said"),
    [
        (("MEM",), "MEM need CUDA, and nothing else is asked"),
        (("RPD",), "RPD needs rpdTracerControl and rocpd"),
    ],
)
def test_activities_that_no_window_could_have_here_are_a_fault(host, activities, said):
    """Told as a window would tell it, and what to do."""
    host()

    found = misfits(SglangOptions(way="native", activities=activities))

    advice = "choose others, or run this where the engine runs"
    assert found == [Advice(f"{said}; {advice}", "activities", "fault")]


def test_activities_that_would_be_left_out_are_a_warning(host):
    """A window opens, with less; with CUDA it has all of it."""
    options = SglangOptions(activities=("CPU", "MEM"))

    host()
    without = misfits(options)
    host(cuda=True)
    there = misfits(options)

    assert [(one.about, one.level) for one in without] == [("activities: MEM", "warning")]
    assert there == []


@pytest.mark.parametrize(
    ("more", "level"), [({"way": "native"}, ["fault"]), ({"way": "worker"}, []), ({}, ["warning"])]
)
def test_a_folder_that_nobody_can_make_is_told(monkeypatch, more, level):
    """A fault where SGLang's own profiler will write there, and a warning where it may."""
    monkeypatch.setattr(_beforehand, "sources_here", lambda: None)

    found = misfits(SglangOptions(profiler_dir="/proc/x", **more))

    assert [one.level for one in found] == level
    assert all("name a folder that can be made" in one.text for one in found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{way: native}", "(SGLang's own profiler records in place of torch)"),
        ("{way: worker}", "(inside it: torch)"),
        (
            "{}",
            (
                "(inside it: torch; without rlprof in its schedulers, SGLang's own profiler "
                "records instead)"
            ),
        ),
    ],
)
def test_who_asks_before_a_run_is_told_what_records(tmp_path, capsys, options, said):
    """The tools inside, or SGLang's own profiler in their place; or what that depends on."""
    file = tmp_path / "profile.yaml"
    engine = "roles: {rollout: {engine: sglang}}"
    file.write_text(f"tool: torch\nsteps: [1]\n{engine}\nengines: {{sglang: {options}}}")

    assert main(["check", str(file)]) == 0

    assert f"engine sglang {said}" in capsys.readouterr().out
