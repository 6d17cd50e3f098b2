"""What is said of the options of `sglang` before there is an engine, on this host."""

from __future__ import annotations

import pytest

from rlprof_cli import main
from rlprof_sglang import Sglang, SglangOptions

TORCH = {"torch": {}}


def misfits(options):
    """Return what is advised on the host alone."""
    return Sglang.advise(options, TORCH, on_host=True)[1:]


@pytest.mark.parametrize(
    ("more", "level"), [({"way": "native"}, ["fault"]), ({"way": "worker"}, []), ({}, ["warning"])]
)
def test_a_folder_that_nobody_can_make_is_told(more, level):
    """A fault where SGLang's own profiler will write there, and a warning where it may."""
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
