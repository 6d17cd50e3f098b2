"""What rlprof-verl uses of verl's releases, kept next to this file.

`python -m tests.verl.signatures --refresh` reads it out of the wheels; `--check` reads
the newest of the index and compares. The snapshot of main (`verl@COMMIT`) was read from a checkout,
by `--from FOLDER`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

from rlprof_verl import _fits
from tests.signatures.record import Json, Record, laid_out
from tests.signatures.sources import class_in, functions_of, has, methods

RELEASES = ("verl==0.8.0", "verl==0.9.0", "verl==0.9.1")
MAIN = "verl@1dda039b9"
_V1 = "verl/trainer/ppo/v1/trainer_base.py"
_ROLLOUT = "verl/workers/rollout"
_RAY = "verl/single_controller/ray/base.py"
_LOOP = "verl/experimental/agent_loop/agent_loop.py"
CLASSES = {
    "PPOTrainer": (_V1, _fits.V1),
    "RayPPOTrainer": ("verl/trainer/ppo/ray_trainer.py", _fits.LEGACY),
    "LLMServerManager": (f"{_ROLLOUT}/llm_server.py", ("get_replicas",)),
    "RayWorkerGroup": (_RAY, ("_create_worker",)),
    "RayClassWithInitArgs": (_RAY, ("update_options",)),
    "AgentLoopWorker": (_LOOP, ("_compute_score",)),
    "PlatformBase": ("verl/plugin/platform/platform_base.py", ("rollout_env_vars",)),
}
"""Class → its file, and the methods whose signatures are kept."""
ATTRIBUTES = {
    "PPOTrainer": (_V1, ("actor_rollout_wg", "critic_wg", "llm_server_manager", "use_critic",
                         "global_steps")),
    "RayPPOTrainer": ("verl/trainer/ppo/ray_trainer.py",
                      ("actor_rollout_wg", "critic_wg", "llm_server_manager", "use_critic",
                       "global_steps", "async_rollout_manager", "checkpoint_manager")),
    "RolloutReplica": (f"{_ROLLOUT}/replica.py",
                       ("servers", "replica_rank", "world_size", "config")),
    "AgentLoopManager": (_LOOP, ("agent_loop_workers",)),
    "vLLMHttpServer": (f"{_ROLLOUT}/vllm_rollout/vllm_async_server.py", ("engine",)),
    "SGLangHttpServer": (f"{_ROLLOUT}/sglang_rollout/async_sglang_server.py",
                         ("tokenizer_manager",)),
}  # fmt: skip
"""Class → its file, and the attributes that its instances must have."""
_TRACE = ("verl/utils/rollout_trace.py", ("rollout_trace_attr", "rollout_trace_op"))


def described(sources: Mapping[str, str]) -> Json:
    """Describe a release by its *sources*: path in the wheel → text."""
    files = {one[0] for one in (*CLASSES.values(), *ATTRIBUTES.values(), _TRACE)}
    trees = {path: ast.parse(sources[path]) for path in files if path in sources}
    found: Json = {}
    for name, (path, wanted) in CLASSES.items():
        node = class_in(trees.get(path), name)
        known = methods([node]) if node is not None else {}
        found[name] = {one: known.get(one) for one in wanted} if node is not None else None
    for name, (path, wanted) in ATTRIBUTES.items():
        node = class_in(trees.get(path), name)
        found[f"{name}.attributes"] = [one for one in wanted if has(node, one)]
    told = trees.get(_TRACE[0])
    functions = functions_of(told) if told is not None else {}  # type: ignore[arg-type]
    found["rollout_trace"] = [name for name in _TRACE[1] if name in functions]
    return found


RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described)


def read_folder(folder: str) -> None:
    """Keep what the sources in *folder* say, as the snapshot of main."""
    root = Path(folder)
    files = root.glob("verl/**/*.py")
    found = RECORD.kept() | {
        MAIN: described({str(one.relative_to(root)): one.read_text() for one in files})
    }
    RECORD.file.write_text(laid_out(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--from"]:
        sys.exit(read_folder(sys.argv[2]))
    sys.exit(RECORD.main("tests.verl.signatures", __doc__))
