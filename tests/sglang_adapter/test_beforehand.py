"""What is said of the options of `sglang` before there is an engine, on this host."""

from __future__ import annotations

import pytest

from rlprof_cli import main


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
