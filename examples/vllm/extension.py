"""A framework whose workers have an extension of its own: `python extension.py MODEL '{}'`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import rlprof


class Extension:
    """The framework's, in vLLM's one slot for it."""

    def framework_version(self) -> str:
        """Answer a call of the framework's."""
        return "1.0"


def main(model: str, more: dict[str, Any]) -> None:
    """Generate for three steps, the second of which the config has recorded."""
    from vllm import LLM, SamplingParams

    launch = rlprof.launch("profile.yaml", role="rollout", ranks=[0])
    os.environ |= launch.env
    arguments = {"model": model, "worker_extension_cls": "extension.Extension", **more}
    engine = LLM(**arguments, **launch.engine_args)
    print(engine.collective_rpc("framework_version"))
    with rlprof.open("profile.yaml", role="driver") as prof:
        prof.attach(engine, role="rollout", replica=0, ranks=[0])
        for _ in prof.steps(range(1, 4)):
            with prof.phase("rollout"):
                engine.generate([{"prompt_token_ids": [1, 5, 6]}], SamplingParams(max_tokens=16))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
