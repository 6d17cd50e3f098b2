"""The callback: the trainer tells it of steps, and its wrapped methods are the phases."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import rlprof

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

PHASES = {
    "_generate": "rollout",
    "_calculate_rewards": "reward",
    "_get_per_token_logps_and_entropies": "log_prob",
    "compute_loss": "forward",
}
"""Methods of TRL's online trainers (1.x) and of any Trainer; what is missing is left out."""


class RlprofCallback:
    """Profiles a trainer: `GRPOTrainer(..., callbacks=[RlprofCallback("profile.yaml")])`.

    It is no subclass of TrainerCallback, so that importing it imports nothing of transformers.
    """

    def __init__(
        self, config: Mapping[str, Any] | str | os.PathLike[str] | None = None, role: str = "actor"
    ) -> None:
        """Take a config, as `rlprof.open` does: None is RLPROF_CONFIG, or off.

        Raise ConfigError for its faults here: training begins only after the model is loaded.
        """
        self.prof: rlprof.Session | rlprof.Off = rlprof.Off()
        rlprof.launch(config, role=role)  # which checks it
        self._config, self._role = config, role
        self._vllm: Any = None
        self._optimizer: Any = None

    def watch(self, trainer: Any) -> Any:
        """Name the phases of *trainer*, record its vLLM, end with it; return the trainer."""
        for name, phase in PHASES.items():
            self._name(trainer, name, phase)
        self._name(trainer.accelerator, "backward", "backward")
        self._vllm = getattr(trainer, "vllm_generation", None)
        self._name(self._vllm, "sync_weights", "update_weights")
        trainer.train = self._ending(trainer.train)
        return trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Open a session of this rank."""
        self.prof.close()
        rank, world = args.process_index, args.world_size
        self.prof = rlprof.open(self._config, role=self._role, rank=rank, world_size=world)
        llm = getattr(self._vllm, "llm", None)
        if llm is not None and "rollout" in self._roles:
            self.prof.attach(llm, replica=rank, ranks=[rank], world_size=world)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Begin the step that the trainer will log."""
        self.prof.step(state.global_step + 1)

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Tell of the next mini-batch."""
        self.prof.minibatch()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Enter the phase of the optimizer."""
        self._optimizer = self.prof.phase("optimizer")
        self._optimizer.__enter__()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Leave it."""
        if self._optimizer is not None:
            self._optimizer.__exit__(None, None, None)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Close the session."""
        self.prof.close()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_"):  # an event that says nothing of steps
            return _nothing
        raise AttributeError(name)

    @property
    def _roles(self) -> Any:
        return self.prof.config.roles if isinstance(self.prof, rlprof.Session) else ()

    def _name(self, owner: Any, name: str, phase: str) -> None:
        own = getattr(owner, name, None)
        if own is None:
            return

        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.prof.phase(phase):
                return own(*args, **kwargs)

        setattr(owner, name, call)

    def _ending(self, train: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(train)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return train(*args, **kwargs)
            finally:  # on_train_end is not called after an exception
                self.prof.close()

        return call


def _nothing(*_: Any, **__: Any) -> None:
    """Hear of an event."""
