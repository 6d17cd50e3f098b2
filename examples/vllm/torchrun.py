"""A trainer whose rank 0 has an engine: `torchrun --nproc-per-node 2 torchrun.py MODEL '{}'`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
import torch.distributed as dist

import rlprof


def generate(engine: Any) -> torch.Tensor:
    """Return a sample on every rank; only the first has an engine."""
    tokens = torch.zeros(16, dtype=torch.long)
    if engine is not None:
        from vllm import SamplingParams

        how = SamplingParams(max_tokens=16, ignore_eos=True)
        (done,) = engine.generate([{"prompt_token_ids": [1, 5, 6]}], how)
        tokens = torch.tensor(done.outputs[0].token_ids)
    dist.broadcast(tokens, src=0)
    return tokens


def update(tokens: torch.Tensor) -> None:
    """Stand for a step of the optimizer."""
    dist.all_reduce(tokens.float())


def main(model: str, more: dict[str, Any]) -> None:
    """Train for three steps, the second of which the config has recorded."""
    engine = None
    if os.environ["RANK"] == "0":
        from vllm import LLM

        launch = rlprof.launch("torchrun.yaml", role="rollout", ranks=[0])
        os.environ |= launch.env
        engine = LLM(model=model, **more, **launch.engine_args)
    dist.init_process_group("gloo")
    with rlprof.open("torchrun.yaml", role="actor") as prof:
        if engine is not None:
            prof.attach(engine, role="rollout", ranks=[0])
        for _ in prof.steps(range(1, 4)):
            with prof.phase("rollout"):
                tokens = generate(engine)
            with prof.phase("update_actor"):
                update(tokens)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
