"""rlprof in the trainers of TRL and transformers: one callback.

cb = RlprofCallback("profile.yaml")
trainer = cb.watch(GRPOTrainer(..., callbacks=[cb]))
"""

from __future__ import annotations

from rlprof_trl._callback import RlprofCallback

__all__ = ["RlprofCallback"]
