"""Makes training of verl reproducible; verl loads it by `VERL_USE_EXTERNAL_MODULES`.

verl names samples at random, sorts no batch, and seeds no request. Here prompts are numbered,
batches sorted, and each request seeded by its step, sample and session. ALIKE is the folder to
which each rollout process writes digests of the weights that it receives. HOLDS are steps whose
requests wait for a file there, so that a second shell is never too late.
"""

import asyncio
import hashlib
import itertools
import json
import os
import types
from pathlib import Path

import verl_cpu

_FOLDER = Path(os.environ["ALIKE"])
_HOLDS = json.loads(os.environ["HOLDS"])


def _number_prompts(module):
    count = itertools.count()
    module.uuid = types.SimpleNamespace(uuid4=lambda: f"{next(count):08d}")


def _sort_batches(module):
    cls = module.ReplayBuffer
    own = cls._materialize_batch

    def _materialize_batch(self, partition_id, selected, snapshot):
        return own(self, partition_id, selected, dict(sorted(snapshot.items())))

    cls._materialize_batch = _materialize_batch


def _seed_requests(module):
    own = module.AgentLoopWorker._run_agent_loop

    async def _run_agent_loop(self, sampling_params, trajectory, **kwargs):
        session = kwargs.get("session_id", trajectory["rollout_n"])
        step, sample = int(trajectory["step"]), int(trajectory["sample_index"])
        seed = (step * 1009 + sample) * 101 + int(session)
        while str(step) in _HOLDS and not (_FOLDER / _HOLDS[str(step)]).exists():
            await asyncio.sleep(0.05)
        return await own(self, {**sampling_params, "seed": seed}, trajectory, **kwargs)

    module.AgentLoopWorker._run_agent_loop = _run_agent_loop


def _digest_weights(module):
    own = module.BucketedWeightReceiver.receive_weights

    def receive_weights(self, on_bucket_received):
        digest = hashlib.sha256()

        def keep(bucket, *more):
            for name, tensor in bucket:
                digest.update(name.encode())
                digest.update(tensor.detach().cpu().contiguous().float().numpy().tobytes())
            return on_bucket_received(bucket, *more)

        result = own(self, keep)
        with (_FOLDER / f"weights-{os.getpid()}").open("a") as file:
            file.write(digest.hexdigest() + "\n")
        return result

    module.BucketedWeightReceiver.receive_weights = receive_weights


_ROLLOUT = "verl.workers.rollout.vllm_rollout"
verl_cpu._AfterImport.changes |= {
    "verl.trainer.ppo.v1.trainer_base": _number_prompts,
    "verl.trainer.ppo.v1.replay_buffer": _sort_batches,
    "verl.experimental.agent_loop.agent_loop": _seed_requests,
    f"{_ROLLOUT}.bucketed_weight_transfer": _digest_weights,
}
