"""A trainer of verl's with a fleet: a subclass of whichever trainer verl was about to make."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import rlprof
from rlprof_ray import Fleet
from rlprof_verl import _fits
from rlprof_verl._asked import asked, prepare, run_hook
from rlprof_verl._births import launched
from rlprof_verl._members import members
from rlprof_verl._translate import is_async

if TYPE_CHECKING:
    from collections.abc import Callable

Trainer: Any = object
"""The trainer of verl's, which comes next in the order of bases."""


def recorded(cls: type[Any]) -> type[Any]:
    """Return *cls* with a fleet; raise RuntimeError for a verl that does not fit."""
    if why := _fits.misfit(cls):
        raise RuntimeError(
            f"rlprof-verl: {why}; install a verl from 0.8.0 to 0.9.1, or a newer rlprof-verl, "
            "or choose another global_profiler.tool"
        )
    kind, phases = (_V1, _fits.V1_PHASES) if _fits.is_v1(cls) else (_Legacy, _fits.PHASES)
    methods = {name: _in_phase(getattr(cls, name), phase) for name, phase in phases.items()}
    own = {"__module__": cls.__module__, "__doc__": cls.__doc__, **methods}
    return type(cls.__name__, (kind, cls), own)


def _in_phase(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._rlprof.phase(name):
            return method(self, *args, **kwargs)

    return call


class _Recorded(Trainer):  # type: ignore[misc]
    """What both kinds share: the run around `fit`, the steps in it, and validation."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        self._rlprof_config = asked(config)  # all faults are reported before a worker is made
        self._rlprof_hook = prepare(config, self._rlprof_config)
        self._rlprof_is_async = is_async(config)
        self._rlprof_validates = False
        self._rlprof_gen: Any = None
        self._rlprof_step: Any = iter(())
        self._rlprof: Any = rlprof.Off()
        super().__init__(config, *args, **kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        fleet = Fleet(self._rlprof_config)
        with ExitStack() as after:  # last in, first out
            after.callback(lambda: run_hook(self._rlprof_hook, fleet.run_dir))
            after.callback(setattr, self, "_rlprof", rlprof.Off())
            self._rlprof = after.enter_context(fleet)
            after.callback(self._rlprof_end)
            after.callback(self._rlprof_generated)
            if isinstance(fleet.session, rlprof.Session):
                agents = args[0] if args else getattr(self, "async_rollout_manager", None)
                there = self._rlprof_config.roles
                fleet.session.attempt(
                    "attach", lambda: fleet.attach(**members(self, agents, there))
                )
            return super().fit(*args, **kwargs)

    def _validate(self, *args: Any, **kwargs: Any) -> Any:
        self._rlprof_validates = True
        try:
            with self._rlprof.phase("testing"):
                return super()._validate(*args, **kwargs)
        finally:
            self._rlprof_validates = False

    def _rlprof_begin(self) -> None:
        """Begin the step; it ends with verl's, before validation, unless a window joins steps."""
        if self._rlprof_config.join_steps:
            self._rlprof.step(self.global_steps)
            return
        self._rlprof_end()
        self._rlprof_step = iter(self._rlprof.steps([self.global_steps]))
        next(self._rlprof_step)

    def _rlprof_end(self) -> None:
        next(self._rlprof_step, None)

    def _rlprof_generate(self) -> None:
        """Enter the phase `gen`, unless it has begun."""
        if self._rlprof_gen is None:
            self._rlprof_gen = self._rlprof.phase("gen")
            self._rlprof_gen.__enter__()

    def _rlprof_generated(self) -> None:
        scope, self._rlprof_gen = self._rlprof_gen, None
        if scope is not None:
            scope.__exit__(None, None, None)


class _V1(_Recorded):
    """verl since 0.9: what happens in a step is a method of the trainer, made to be overridden."""

    def init(self, *args: Any, **kwargs: Any) -> Any:
        with launched(self, self._rlprof_config):
            return super().init(*args, **kwargs)

    def on_step_begin(self) -> None:
        self._rlprof_begin()
        super().on_step_begin()

    def _add_batch_to_generate(self) -> Any:
        """Replicas begin to generate here, before verl's timer `gen` begins."""
        if not self._rlprof_is_async:
            self._rlprof_generate()
        return super()._add_batch_to_generate()

    def on_sample_begin(self) -> None:
        self._rlprof_generate()
        super().on_sample_begin()

    def on_sample_end(self) -> None:
        """Close the window first: replicas are put to sleep here, which verl's `gen` includes."""
        self._rlprof_generated()
        with self._rlprof.phase("sleep"):
            super().on_sample_end()

    def on_step_end(self) -> None:
        with self._rlprof.phase("update_weights"):
            super().on_step_end()
        self._rlprof_end()


class _Legacy(_Recorded):
    """verl 0.8, and later ones with `use_v1=false`: its managers generate and send weights."""

    def init_workers(self, *args: Any, **kwargs: Any) -> Any:
        with launched(self, self._rlprof_config):
            return super().init_workers(*args, **kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        self._rlprof_wrap("async_rollout_manager", "generate_sequences", "gen")
        self._rlprof_wrap("checkpoint_manager", "update_weights", "update_weights")
        return super().fit(*args, **kwargs)

    def _rlprof_wrap(self, owner: str, name: str, phase: str) -> None:
        """Have the method of one object be a phase, except in validation."""
        own = getattr(getattr(self, owner), name)

        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._rlprof_validates:
                return own(*args, **kwargs)
            with self._rlprof.phase(phase):
                return own(*args, **kwargs)

        setattr(getattr(self, owner), name, call)

    def _start_profiling(self, *args: Any, **kwargs: Any) -> None:
        """Begin the step: verl calls this first in each, recorded or not."""
        self._rlprof_begin()
        super()._start_profiling(*args, **kwargs)

    def _stop_profiling(self, *args: Any, **kwargs: Any) -> None:
        super()._stop_profiling(*args, **kwargs)
        self._rlprof_end()
