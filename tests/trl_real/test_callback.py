"""The callback in the real trainers of transformers and TRL, on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlprof

pytest.importorskip("trl", reason="runs in the environment trl: make test-trl")
import torch
from transformers import Trainer, TrainingArguments

from rlprof_trl import RlprofCallback

ROOT = Path(__file__).parents[2]
ROLES = {"actor": {"phases": ["forward", "backward", "optimizer"]}}


class Net(torch.nn.Module):
    """The smallest model for Trainer; raises in call *raises_in*."""

    def __init__(self, raises_in=0):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 1)
        self.raises_in, self.calls = raises_in, 0

    def forward(self, x):
        self.calls += 1
        if self.calls == self.raises_in:
            raise ValueError("no")
        return {"loss": self.linear(x).square().mean()}


@pytest.fixture(name="trained")
def _trained(tmp_path):
    """Return a function that trains with callbacks and returns the weights."""

    def train(*callbacks, **wrong):
        args = TrainingArguments(
            output_dir=str(tmp_path / "out"), use_cpu=True, max_steps=3, report_to=[],
            per_device_train_batch_size=2, gradient_accumulation_steps=2, save_strategy="no",
        )  # fmt: skip
        data = [{"x": torch.full((4,), float(number))} for number in range(12)]
        model = Net(**wrong)
        trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=list(callbacks))
        for one in callbacks:
            one.watch(trainer)
        trainer.train()
        return model.linear.weight.detach()

    return train


@pytest.fixture(name="callback")
def _callback(tmp_path):
    config = {"run_dir": str(tmp_path / "runs"), "tool": "torch", "steps": [2], "roles": ROLES}
    return RlprofCallback(config)


def test_a_recorded_trainer_has_the_same_weights(trained, callback):
    """A step of Trainer is recorded whole, and the weights are bit-equal to those without."""
    weights = trained(callback)

    found = rlprof.read(callback.prof.run_dir).captures
    assert [(one.window.id, one.state) for one in found] == [
        ("2/forward", "whole"),
        ("2/backward", "whole"),
        ("2/forward.1", "whole"),
        ("2/backward.1", "whole"),
        ("2/optimizer", "whole"),
    ]
    assert torch.equal(weights, trained())


def test_a_session_ends_with_a_trainer_that_raises(trained, callback):
    """A trainer's error passes through and ends the session; all captures are whole."""
    with pytest.raises(ValueError, match="no"):
        trained(callback, raises_in=4)

    run = rlprof.read(callback.prof.run_dir)
    assert not run.is_running
    assert {one.state for one in run.captures} == {"whole"}


def test_grpo_is_recorded_with_its_colocated_engine(tmp_path):
    """TRL's phases and the vLLM inside the trainer's process are recorded in one run."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, ROOT / "tests/trl_real/grpo.py", tmp_path],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    (folder,) = (tmp_path / "runs").iterdir()
    run = rlprof.read(folder)
    states = {(str(one.target), one.tool, one.state) for one in run.captures}
    assert states == {
        ("actor 0/1", "torch", "whole"),
        ("rollout replica 0", "vllm", "whole"),
        ("rollout replica 0 worker 0", "torch", "whole"),
    }
    phases = {one.name for one in run.spans() if one.kind == "phase"}
    assert phases >= {"rollout", "reward", "forward", "backward", "optimizer"}
