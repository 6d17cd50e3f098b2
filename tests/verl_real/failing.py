"""Loaded by verl (`VERL_USE_EXTERNAL_MODULES`): the trainer's update of step 2 fails."""

from __future__ import annotations

import verl_cpu


def _fail(module):
    own = module.PPOTrainer._update_actor

    def _update_actor(self, batch, metrics):
        if self.global_steps == 2:
            raise RuntimeError("the loss is nan")
        return own(self, batch, metrics)

    module.PPOTrainer._update_actor = _update_actor


verl_cpu._AfterImport.changes["verl.trainer.ppo.v1.trainer_base"] = _fail
