"""What the plugin costs and changes in verl, and the names it needs in each release."""

import json
import subprocess
import sys

import pytest

from tests.verl import signatures

PROGRAM = """
import importlib.abc, importlib.util, json, logging, os, pickle, sys
before = set(sys.modules)
import rlprof_verl.plugin
print(json.dumps(sorted(set(sys.modules) - before)))
import verl.trainer.ppo.v1.trainer_base as base, verl.trainer.ppo.ray_trainer as legacy
import verl.utils.rollout_trace as trace, verl.experimental.agent_loop.agent_loop as loop
about = [vars(one).keys() for one in (base.PPOTrainer, legacy.RayPPOTrainer)]
marks = trace.rollout_trace_attr, trace.rollout_trace_op
print(json.dumps([["__new__" in one for one in about], "rlprof" in str(marks[1].__code__),
                  hasattr(loop.AgentLoopWorker._compute_score, "__wrapped__")]))
print(json.dumps([pickle.loads(pickle.dumps(one)) is one for one in marks]))
"""
TRACE = """
import contextlib
@contextlib.contextmanager
def rollout_trace_attr(sample_index=None, step=None, rollout_n=None, validate=False):
    yield
def rollout_trace_op(function):
    return function
"""
LOOP = """
class AgentLoopWorker:
    async def _compute_score(self, outputs, kwargs): ...
"""


def test_it_imports_itself_and_changes_three_classes_and_two_functions(tmp_path):
    """The plugin imports only itself, and its marks in verl are pickled by reference."""
    modules = {
        "verl/__init__.py": "", "verl/experimental/agent_loop/agent_loop.py": LOOP,
        "verl/trainer/ppo/v1/trainer_base.py": "class PPOTrainer: ...\n",
        "verl/trainer/ppo/ray_trainer.py": "class RayPPOTrainer: ...\n",
        "verl/utils/rollout_trace.py": TRACE,
    }  # fmt: skip
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    argv = [sys.executable, "-c", PROGRAM]

    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)

    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert set(told[0]) - {"__future__"} == {"rlprof_verl", "rlprof_verl.plugin"}
    assert told[1] == [[True, True], True, True]  # right after the import of each
    assert told[2] == [True, True]


def test_a_verl_without_the_names_goes_on(tmp_path):
    """The import of a verl module without the expected names succeeds, with a warning."""
    (tmp_path / "verl/utils").mkdir(parents=True)
    (tmp_path / "verl/__init__.py").touch()
    (tmp_path / "verl/utils/rollout_trace.py").write_text("here = 1\n")
    program = "import rlprof_verl.plugin, verl.utils.rollout_trace as t; print(t.here)"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "rlprof-verl cannot use verl.utils.rollout_trace" in done.stderr


KEPT = signatures.RECORD.kept()
HOOKS = ("on_step_begin", "on_sample_begin", "on_sample_end", "on_step_end")
"""Hooks without arguments that are overridden."""


@pytest.mark.parametrize("release", KEPT)
def test_a_verl_has_every_name_that_is_used(release):
    """Each release has the methods and attributes that rlprof-verl uses."""
    said = KEPT[release]

    assert set(KEPT) == {*signatures.RELEASES, signatures.MAIN}
    for kind in ("RayPPOTrainer", "PPOTrainer")[: 1 if release == "verl==0.8.0" else 2]:
        assert None not in said[kind].values()
        assert list(signatures.ATTRIBUTES[kind][1]) == said[f"{kind}.attributes"]
    for name in ("RolloutReplica", "AgentLoopManager", "vLLMHttpServer", "SGLangHttpServer"):
        assert list(signatures.ATTRIBUTES[name][1]) == said[f"{name}.attributes"]
    for hook in HOOKS if release != "verl==0.8.0" else ():
        assert said["PPOTrainer"][hook] == f"def {hook}(self)"
    assert said["LLMServerManager"] == {"get_replicas": "def get_replicas(self)"}
    assert said["rollout_trace"] == ["rollout_trace_attr", "rollout_trace_op"]
