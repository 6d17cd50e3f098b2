"""What this loop has added to vLLM's workers, as every framework adds something: new weights.

It stands by itself because the workers import it; rlprof needs no place here.
"""

from __future__ import annotations

from typing import Any


class WeightSync:
    """Mixed into vLLM's worker through `worker_extension_cls`."""

    reload_weights: Any

    def ray_rl_load(self, data: bytes) -> int:
        """Load weights that come as safetensors; return how many there were."""
        from safetensors.torch import load

        weights = load(data)
        self.reload_weights(weights_iterator=iter(weights.items()))
        return len(weights)
