"""Faults on the real torch_npu are reported and never change training."""

from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.slow


def lines(done, start):
    """Return what *done* printed after *start*."""
    return [line for line in done.output.splitlines() if line.startswith(start)]


# failures.md: npu-threads
def test_misuse_keeps_training_bit_equal(drive):
    """Forks, and a stop on another thread, spoil windows; training and its children continue."""
    options = {"contents": ["npu", "cpu", "stack"], "analysis": "none"}
    fast = {"TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT": "0"}  # else each child of torch waits 10 s

    def run(steps):
        return drive("misuse", options, env=fast, steps=steps)

    with ThreadPoolExecutor(2) as pool:
        bare, done = pool.map(run, ([9], [1, 2, 3]))

    states = [(one.window.id, one.state) for one in done.run.captures]
    assert (bare.returncode, done.returncode) == (0, 0), done.output
    assert len(lines(bare, "trained")) == 1
    assert lines(done, "trained") == lines(bare, "trained")
    assert lines(done, "child") == ["child 3"] * 4
    assert lines(done, "followed") == ["followed None"]
    assert states == [
        ("1/update_actor", "whole"),
        ("2/update_actor", "partial"),
        ("3/update_actor", "failed"),
    ]
    assert "ended on another thread" in " ".join(done.run.captures[2].notes)
