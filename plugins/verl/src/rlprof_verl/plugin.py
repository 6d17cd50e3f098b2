"""What verl loads in each of its processes: it waits for four modules of verl, and imports none.

It must not import rlprof or verl's trainers: verl loads it in every worker, and those take seconds.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec

log = logging.getLogger("rlprof")


def is_asked(config: Any) -> bool:
    """Whether a config of verl's has rlprof record the run."""
    tool = getattr(getattr(config, "global_profiler", None), "tool", "")  # "": another's config
    return tool == "rlprof" or (tool is None and bool(os.environ.get("RLPROF_CONFIG")))


def _make_trainer(cls: type[Any], *args: Any, **kwargs: Any) -> Any:
    """Make a trainer: a recorded one, where asked."""
    config = kwargs.get("config", args[0] if args else None)
    if is_asked(config):
        from rlprof_verl._trainer import recorded

        cls = recorded(cls)
    return object.__new__(cls)


def _record_trainers(module: Any) -> None:
    for name in {"PPOTrainer", "RayPPOTrainer"} & vars(module).keys():
        getattr(module, name).__new__ = staticmethod(_make_trainer)


def _note_trajectories(module: Any) -> None:
    from rlprof_verl._trajectories import note

    note(module)


PLACES = {
    "verl.trainer.ppo.v1.trainer_base": _record_trainers,
    "verl.trainer.ppo.ray_trainer": _record_trainers,
    "verl.utils.rollout_trace": _note_trajectories,
    "verl.experimental.agent_loop.agent_loop": _note_trajectories,
}
"""Modules of verl, and what is changed in each as soon as it is imported."""


class _AfterImport(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._left = dict(PLACES)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002 -- its protocol
        change = self._left.pop(name, None)
        spec = importlib.util.find_spec(name) if change else None
        if change is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _changed(module, change)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _changed(module: Any, change: Callable[[Any], None]) -> None:
    try:
        change(module)
    except Exception:  # verl goes on without rlprof
        log.exception("rlprof-verl cannot use %s of this verl", module.__name__)


def wait() -> None:
    """Change what has been imported, and wait for the rest."""
    for name, change in PLACES.items():
        if name in sys.modules:
            _changed(sys.modules[name], change)
    sys.meta_path.insert(0, _AfterImport())


wait()
