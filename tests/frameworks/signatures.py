"""What `rlprof attach` and the recipes use of frameworks, stored by `framework@COMMIT`.

`python -m tests.frameworks.signatures FRAMEWORK COMMIT FOLDER` reads a checkout again.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.signatures.record import Json, laid_out
from tests.signatures.sources import functions_of, has, lineage, methods

KEPT = Path(__file__).with_suffix(".json")
_NEMO, _NEMO_QUANT = "nemo_rl/models", "nemo_rl/modelopt/models"
_SKYRL, _SKYRL_SERVERS = (
    f"skyrl/backends/skyrl_train/{folder}" for folder in ("workers", "inference_servers")
)
ACTORS: dict[str, dict[str, tuple[str, str]]] = {
    "OpenRLHF": {
        "PolicyModelActor": ("openrlhf/trainer/ray/ppo_actor.py", "actor"),
        "CriticModelActor": ("openrlhf/trainer/ray/ppo_critic.py", "critic"),
        "ReferenceModelActor": ("openrlhf/trainer/ray/launcher.py", "ref"),
        "RewardModelActor": ("openrlhf/trainer/ray/launcher.py", "reward"),
        "RolloutRayActor": ("openrlhf/trainer/ray/vllm_engine.py", "rollout"),
    },
    "slime": {
        "MegatronTrainRayActor": ("slime/backends/megatron_utils/actor.py", "actor"),
        "SGLangEngine": ("slime/backends/sglang_utils/sglang_engine.py", "rollout"),
        "RolloutManager": ("slime/ray/rollout.py", "rollout_manager"),
    },
    "NeMo-RL": {
        "DTensorPolicyWorker": (f"{_NEMO}/policy/workers/dtensor_policy_worker.py", "actor"),
        "DTensorPolicyWorkerV2": (f"{_NEMO}/policy/workers/dtensor_policy_worker_v2.py", "actor"),
        "MegatronPolicyWorker": (f"{_NEMO}/policy/workers/megatron_policy_worker.py", "actor"),
        "DTensorValueWorkerV2": (f"{_NEMO}/value/workers/dtensor_value_worker_v2.py", "critic"),
        "MegatronValueWorker": (f"{_NEMO}/value/workers/megatron_value_worker.py", "critic"),
        "VllmGenerationWorker": (f"{_NEMO}/generation/vllm/vllm_worker.py", "rollout"),
        "VllmAsyncGenerationWorker": (f"{_NEMO}/generation/vllm/vllm_worker_async.py", "rollout"),
        "SGLangGenerationWorker": (f"{_NEMO}/generation/sglang/sglang_worker.py", "rollout"),
        "VllmQuantGenerationWorker": (f"{_NEMO_QUANT}/generation/vllm_quant_worker.py", "rollout"),
        "MegatronQuantPolicyWorker": (
            f"{_NEMO_QUANT}/policy/workers/megatron_quant_policy_worker.py", "actor"
        ),
    },
    "SkyRL": {
        "FSDPPolicyWorkerBase": (f"{_SKYRL}/fsdp/fsdp_worker.py", "actor"),
        "FSDPCriticWorkerBase": (f"{_SKYRL}/fsdp/fsdp_worker.py", "critic"),
        "FSDPRefWorkerBase": (f"{_SKYRL}/fsdp/fsdp_worker.py", "ref"),
        "MegatronPolicyWorkerBase": (f"{_SKYRL}/megatron/megatron_worker.py", "actor"),
        "MegatronCriticWorkerBase": (f"{_SKYRL}/megatron/megatron_worker.py", "critic"),
        "MegatronRefWorkerBase": (f"{_SKYRL}/megatron/megatron_worker.py", "ref"),
        "VLLMServerActor": (f"{_SKYRL_SERVERS}/vllm_server_actor.py", "rollout"),
    },
}  # fmt: skip
"""Framework → class of its Ray actors → its file and role."""
_METHODS = re.compile(
    r"train\w*|finish_train\w*|update_weights|broadcast_to\w*|get_(base_)?url"
    r"|get_server_info"
)
"""Methods that are stored: those that may end a step, and those that return addresses."""
_PACKAGES = {"NeMo-RL": "nemo_rl"}
ATTRIBUTES = ("llm", "rank", "_rank")
"""Attributes of an actor that hold its engine or its rank."""
FUNCTIONS = {
    "AReaL": {"areal/utils/perf_tracer.py": ("trace_scope", "atrace_scope")},
    "slime": {"train.py": ("train",)},
}
"""Framework → file → functions that its recipe wraps or edits."""


def described(framework: str, sources: Mapping[str, str]) -> Json:
    """Describe a checkout by its *sources*: path → text."""
    package, scripts = _PACKAGES.get(framework, framework.lower()), FUNCTIONS.get(framework, {})
    trees = {
        path: ast.parse(text)
        for path, text in sources.items()
        if path.startswith(f"{package}/") or path in scripts
    }
    found: Json = {}
    for name, (path, _) in ACTORS.get(framework, {}).items():
        line = list(lineage(trees.get(path), name, trees))
        known = methods(line)
        found[name] = {
            "methods": sorted(filter(_METHODS.fullmatch, known)),
            "attributes": [one for one in ATTRIBUTES if any(has(node, one) for node in line)],
            "async": any(isinstance(one, ast.AsyncFunctionDef) for node in line
                         for one in functions_of(node).values()),
        } if line else None  # fmt: skip
    for path, names in scripts.items():
        own = functions_of(trees.get(path))  # type: ignore[arg-type]
        found[path] = {one: [arg.arg for arg in (*own[one].args.args, *own[one].args.kwonlyargs)]
                       if one in own else None for one in names}  # fmt: skip
    return found


def kept() -> dict[str, Json]:
    """Return the stored descriptions: framework@COMMIT → description."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def read(framework: str, commit: str, folder: str) -> None:
    """Store the description of the checkout in *folder* in place of an older one."""
    root = Path(folder)
    sources = {str(one.relative_to(root)): one.read_text() for one in root.glob("**/*.py")}
    others = {key: said for key, said in kept().items() if not key.startswith(f"{framework}@")}
    found = others | {f"{framework}@{commit}": described(framework, sources)}
    KEPT.write_text(laid_out(dict(sorted(found.items()))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    read(*sys.argv[1:])
