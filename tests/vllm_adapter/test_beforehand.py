"""What is said of the options of `vllm` before there is an engine, on this host."""

from __future__ import annotations

import pytest

from rlprof_cli import main


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("native", "(vLLM's own profiler records in place of torch)"),
        (
            "auto",
            (
                "(inside it: torch; without rlprof in its workers, vLLM's own profiler records "
                "instead)"
            ),
        ),
    ],
)
def test_who_asks_before_a_run_is_told_what_records(tmp_path, capsys, way, said):
    """The tools inside, or vLLM's own profiler in their place; or what that depends on."""
    file = tmp_path / "profile.yaml"
    engine = f"roles: {{rollout: {{engine: vllm}}}}\nengines: {{vllm: {{way: {way}}}}}"
    file.write_text(f"tool: torch\nsteps: [1]\n{engine}\n")

    assert main(["check", str(file)]) == 0

    assert f"engine vllm {said}" in capsys.readouterr().out
