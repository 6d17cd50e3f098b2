"""An Engine recorded: `python engine.py MODEL '{"mem_fraction_static": 0.5}'`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import rlprof


def main(model: str, more: dict[str, Any]) -> None:
    """Generate for three steps, the second of which the config has recorded."""
    import sglang

    launch = rlprof.launch("profile.yaml", role="rollout", ranks=[0])
    os.environ |= launch.env
    engine = sglang.Engine(model_path=model, **more, **launch.engine_args)
    with rlprof.open("profile.yaml", role="driver") as prof:
        prof.attach(engine, role="rollout", replica=0, ranks=[0])
        for _ in prof.steps(range(1, 4)):
            with prof.phase("rollout"):
                engine.generate(input_ids=[[1, 5, 6]] * 4, sampling_params={"max_new_tokens": 16})
    engine.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
