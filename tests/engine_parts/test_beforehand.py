"""What is said of an engine's options before there is an engine, on this host."""

from __future__ import annotations

import pytest

from rlprof_cli import main
from rlprof_sglang import Sglang, SglangOptions
from rlprof_vllm import Vllm, VllmOptions

ENGINES = {"vllm": (Vllm, VllmOptions, "vLLM"), "sglang": (Sglang, SglangOptions, "SGLang")}
every_engine = pytest.mark.parametrize("engine", ENGINES)


@every_engine
@pytest.mark.parametrize(
    ("more", "level"), [({"way": "native"}, ["fault"]), ({"way": "worker"}, []), ({}, ["warning"])]
)
def test_a_folder_that_nobody_can_make_is_told(engine, more, level):
    """A fault where the engine's own profiler will write there, and a warning where it may."""
    plugin, options, _ = ENGINES[engine]

    _, *found = plugin.advise(options(profiler_dir="/proc/x", **more), {"torch": {}}, on_host=True)

    assert [one.level for one in found] == level
    assert all("name a folder that can be made" in one.text for one in found)


@every_engine
@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("native", "({}'s own profiler records in place of torch)"),
        ("worker", "(inside it: torch)"),
        ("auto", "(inside it: torch; without rlprof in its "),
    ],
)
def test_who_asks_before_a_run_is_told_what_records(tmp_path, capsys, engine, way, said):
    """The tools inside, or the engine's own profiler in their place; or what that depends on."""
    file = tmp_path / "profile.yaml"
    roles = f"roles: {{rollout: {{engine: {engine}}}}}\nengines: {{{engine}: {{way: {way}}}}}"
    file.write_text(f"tool: torch\nsteps: [1]\n{roles}\n")

    assert main(["check", str(file)]) == 0
    assert f"engine {engine} {said.format(ENGINES[engine][2])}" in capsys.readouterr().out
