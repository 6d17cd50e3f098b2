"""What `rlprof check` says of an engine before there is one."""

from __future__ import annotations

import pytest

from rlprof_cli import main

ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


@pytest.mark.parametrize("engine", ENGINES)
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
    assert f"engine {engine} {said.format(ENGINES[engine])}" in capsys.readouterr().out
