"""The trainer with a fleet, on a loop that calls its hooks as verl's does; no Ray, no verl."""

import sys
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

import rlprof
from rlprof_verl import plugin
from tests.verl.test_translate import ACTOR, COMPOSED

STEPS = 2


class PPOTrainer:
    """verl's V1 trainer, without its work: the order of its hooks is that of 0.9.1."""

    use_critic = False

    def __init__(self, config):
        self.config = config
        self.actor_rollout_wg = SimpleNamespace(workers=[])
        self.llm_server_manager = SimpleNamespace(get_replicas=list)

    def fit(self, agents):
        for self.global_steps in range(1, STEPS + 1):
            self.on_step_begin()
            self._add_batch_to_generate()
            self.on_sample_begin()
            self.on_sample_end()
            self._compute_old_log_prob(None, metrics={})
            self._compute_ref_log_prob(None, metrics={})
            self._compute_advantage(None, metrics={})
            self._update_actor(None, metrics={})
            self.on_step_end()
            self._validate()
        return agents

    def init(self):
        return None

    def _add_batch_to_generate(self):
        return None

    on_step_begin = on_sample_begin = on_sample_end = on_step_end = _validate = _save_checkpoint = (
        _add_batch_to_generate
    )

    def _update_actor(self, batch, metrics):
        if self.config.get("fails"):
            raise RuntimeError("the loss is nan")
        return batch

    def _compute_old_log_prob(self, batch, metrics):
        return batch

    _compute_reward_colocate = _compute_ref_log_prob = _compute_values = _compute_advantage = (
        _update_critic
    ) = _compute_old_log_prob


class RayPPOTrainer:
    """verl's legacy trainer, without its work: managers generate and send weights."""

    use_critic = False

    def __init__(self, config):
        self.actor_rollout_wg = SimpleNamespace(workers=[])
        self.async_rollout_manager = SimpleNamespace(generate_sequences=str)
        self.checkpoint_manager = SimpleNamespace(update_weights=str)

    def init_workers(self):
        pass

    def fit(self):
        for self.global_steps in range(1, STEPS + 1):
            self._start_profiling(False)
            self.async_rollout_manager.generate_sequences("prompts")
            self._update_actor(None, metrics={})
            self._validate()
            self.checkpoint_manager.update_weights(self.global_steps)
            self._stop_profiling(False)

    def _validate(self):
        self.async_rollout_manager.generate_sequences("test prompts")

    def _start_profiling(self, do_profile):
        pass

    _stop_profiling = _save_checkpoint = _compute_reward_colocate = _start_profiling
    _compute_old_log_prob = _compute_ref_log_prob = _compute_values = _start_profiling
    _update_actor = _update_critic = PPOTrainer._compute_values


@pytest.fixture(name="trainer")
def _trainer(monkeypatch):
    """Return verl's class as the plugin leaves it."""
    module = SimpleNamespace(PPOTrainer=type("PPOTrainer", (PPOTrainer,), {}))
    monkeypatch.setitem(sys.modules, "verl", SimpleNamespace(__version__="0.9.1"))
    plugin.PLACES["verl.trainer.ppo.v1.trainer_base"](module)
    return module.PPOTrainer


@pytest.fixture(name="config")
def _config(tmp_path):
    """Return a function that composes verl's config and overrides keys of it."""

    def make(**keys):
        config = OmegaConf.load(COMPOSED)
        OmegaConf.update(config, "global_profiler.save_path", str(tmp_path / "runs"))
        for key, value in keys.items():
            OmegaConf.update(config, key, value, force_add=True)
        return config

    return make


def spans_of(run, kind):
    """Return step and name of the spans of a kind, as they began."""
    found = sorted(run.spans(), key=lambda span: span.start_ns)
    return [(span.step, span.name) for span in found if span.kind == kind]


def the_run(tmp_path):
    (folder,) = (tmp_path / "runs").iterdir()
    return rlprof.read(folder)


@pytest.mark.parametrize("tool", [None, "torch", "nsys"])
def test_with_another_tool_the_trainer_is_that_of_verl(trainer, config, tool, tmp_path):
    """With another tool the trainer and its config stay verl's, and there is no run."""
    asked = config(**{"global_profiler.tool": tool, "global_profiler.steps": [1]})
    before = OmegaConf.to_container(asked)

    made = trainer(config=asked)

    assert type(made) is trainer
    assert made.fit("agents") == "agents"
    assert OmegaConf.to_container(asked) == before
    assert not (tmp_path / "runs").exists()


def test_steps_and_phases_are_those_of_verl(trainer, config, tmp_path):
    """Each step has the phases that verl times, and validation is in no step."""
    made = trainer(config(**{"global_profiler.tool": "rlprof"}))

    assert isinstance(made, trainer)
    assert made.fit("agents") == "agents"
    run = the_run(tmp_path)
    assert spans_of(run, "step") == [(step, f"step {step}") for step in range(1, STEPS + 1)]
    names = ["gen", "sleep", "old_log_prob", "ref", "adv", "update_actor", "update_weights"]
    told = [(step, name) for step, name in spans_of(run, "phase") if name != "testing"]
    assert told == [(step, name) for step in range(1, STEPS + 1) for name in names]
    assert spans_of(run, "phase").count((None, "testing")) == STEPS


@pytest.mark.usefixtures("trainer")
def test_the_legacy_trainer_has_its_steps_and_phases_too(config, tmp_path):
    """Steps of the legacy trainer have its phases; generation for validation is in `testing`."""
    home = "verl.trainer.ppo.ray_trainer"
    legacy = type("RayPPOTrainer", (RayPPOTrainer,), {"__module__": home})
    plugin.PLACES[home](SimpleNamespace(RayPPOTrainer=legacy))

    legacy(config(**{"global_profiler.tool": "rlprof"})).fit()

    names = ["gen", "update_actor", "testing", "update_weights"]
    told = spans_of(the_run(tmp_path), "phase")
    assert told == [(step, name) for step in range(1, STEPS + 1) for name in names]


def test_verls_own_profiler_is_off(trainer, config):
    """With rlprof as the tool, verl's own profiler is off in the config."""
    asked = config(**{"global_profiler.tool": "rlprof", "global_profiler.steps": [1]})
    OmegaConf.update(asked, f"{ACTOR}.enable", value=True)
    OmegaConf.update(asked, "actor_rollout_ref.rollout.profiler.enable", value=False)

    trainer(asked)

    assert asked.global_profiler.steps is None
    assert asked.actor_rollout_ref.rollout.profiler is None
    assert asked.actor_rollout_ref.actor.profiler.enable is False


def test_a_step_that_fails_fails_as_in_verl(trainer, config, tmp_path):
    """A step that fails raises its error, ends the run, and runs verl's finish hook."""
    told = tmp_path / "told"
    hook = f'echo "$VERL_PROFILE_TOOL $VERL_PROFILE_SAVE_PATH" > {told}'
    keys = {"global_profiler.tool": "rlprof", "global_profiler.finish_hook_cmd": hook}

    with pytest.raises(RuntimeError, match="the loss is nan"):
        trainer(config(fails=True, **keys)).fit("agents")

    run = the_run(tmp_path)
    assert {process.state for process in run.processes} == {"ended"}
    assert spans_of(run, "step") == [(1, "step 1")]
    assert told.read_text().split() == ["rlprof", str(run.path)]


def test_a_verl_that_does_not_fit_is_refused(trainer, config, monkeypatch):
    """A trainer without an expected method is refused with its name, if rlprof is the tool."""
    monkeypatch.delattr(PPOTrainer, "on_sample_end")

    assert type(trainer(config())) is trainer
    with pytest.raises(RuntimeError, match=r"PPOTrainer of verl 0\.9\.1 has no on_sample_end"):
        trainer(config(**{"global_profiler.tool": "rlprof"}))


def test_a_variable_alone_is_enough(trainer, config, tmp_path, monkeypatch):
    """`RLPROF_CONFIG` alone records a run; verl's config needs no key."""
    file = tmp_path / "profile.yaml"
    file.write_text(f"run_dir: {tmp_path / 'runs'}\ntool: none\n")
    monkeypatch.setenv("RLPROF_CONFIG", str(file))

    trainer(config()).fit("agents")

    assert len(spans_of(the_run(tmp_path), "step")) == STEPS
