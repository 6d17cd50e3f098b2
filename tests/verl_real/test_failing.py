"""A step that fails in verl ends as it does without rlprof."""

from __future__ import annotations

from tests.verl_real.training import train


def test_a_failing_step_keeps_its_error_and_its_windows(tmp_path):
    """The exit code and the error are verl's; what was recorded is whole, and the run has ended."""
    hook = f"global_profiler.finish_hook_cmd='touch {tmp_path}/hook'"

    failed = train("recorded", tmp_path, 3, overrides=[hook], modules="failing")

    run = failed.run
    assert failed.code == 1
    assert "RuntimeError: the loss is nan" in failed.log
    assert {capture.state for capture in run.captures} == {"whole"}
    phases = {capture.window.phase for capture in run.captures}
    assert phases == {"gen", "old_log_prob", "ref", "update_actor"}
    assert {process.state for process in run.processes} == {"ended"}
    assert (tmp_path / "hook").exists()
