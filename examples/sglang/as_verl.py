"""A replica as verl has it, recorded: `python as_verl.py MODEL '{"mem_fraction_static": 0.5}'`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import ray

import rlprof_ray


class Server:
    """verl's server actor, as far as it matters here: a TokenizerManager, and no Engine."""

    async def launch(self, model: str, more: dict[str, Any]) -> None:
        """Start SGLang's processes; the manager belongs to this actor's loop from now on."""
        from sglang.srt.entrypoints.engine import Engine
        from sglang.srt.server_args import ServerArgs

        self.tokenizer_manager, *_ = Engine._launch_subprocesses(  # noqa: SLF001 -- as verl does
            server_args=ServerArgs(model_path=model, **more),
            init_tokenizer_manager_func=Engine.init_tokenizer_manager_func,
            run_scheduler_process_func=Engine.run_scheduler_process_func,
            run_detokenizer_process_func=Engine.run_detokenizer_process_func,
        )

    async def generate(self, number: int) -> int:
        """Have four requests answered; return how many tokens came."""
        from sglang.srt.managers.io_struct import GenerateReqInput

        async def one(name: str) -> int:
            chosen = {"max_new_tokens": 16}
            asked = GenerateReqInput(rid=name, input_ids=[1, 5, 6], sampling_params=chosen)
            answer = await anext(self.tokenizer_manager.generate_request(asked, None))
            return len(answer["output_ids"])

        return sum(await asyncio.gather(*(one(f"{number}-{n}") for n in range(4))))


def main(model: str, more: dict[str, Any]) -> None:
    """Generate for three steps, the second of which the config has recorded."""
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    with rlprof_ray.Fleet("profile.yaml") as fleet:
        launch = fleet.launch("rollout", ranks=[0])
        made = ray.remote(Server).options(max_concurrency=64, runtime_env=launch.runtime_env)
        server = made.remote()
        ray.get(server.launch.remote(model, {**more, **launch.engine_args}))
        fleet.attach(rollout=[rlprof_ray.Replica(server, via="actor:tokenizer_manager")])
        for step in fleet.steps(range(1, 4)):
            with fleet.phase("rollout"):
                ray.get(server.generate.remote(step))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
