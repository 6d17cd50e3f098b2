"""Frameworks on Ray, by the classes of their actors: trainers, servers, and the end of a step.

Taken from the sources of verl 0.7 to 0.9, OpenRLHF 0.11, NeMo-RL 0.7, SkyRL 0.3 and slime 0.3.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence


@attrs.frozen
class Kind:
    """Actors of one kind."""

    framework: str
    pattern: str
    """A pattern of the class; also of the name, if the user gave it."""
    role: str
    engine: str = ""
    """The attribute with the rollout engine; `url:METHOD`: the method that returns its address."""
    server: str = "sglang"
    """The plugin that records an engine reached by its address."""
    version: str = ""
    """The attribute that counts weight updates: step n + 1 begins when it becomes n."""
    ends_step: str = ""
    """The method that ends a step when it returns; used if no actor has a version."""
    is_only_watched: bool = False
    """It waits for others: its calls are phases, but a tool would record nothing of use."""
    is_users: bool = False

    def matches(self, kind: str, name: str) -> bool:
        """Whether it is an actor of the class *kind* called *name*."""
        if self.is_users:
            return any(re.search(self.pattern, word) for word in (kind, name) if word)
        return re.fullmatch(self.pattern, kind) is not None


_VERL = "verl"
_OPENRLHF = "OpenRLHF"
_NEMO = "NeMo-RL"
_SKYRL = "SkyRL"

KINDS = (
    Kind(_VERL, r"WorkerDict|FusedWorker\w*|(Async)?ActorRolloutRefWorker|TrainingWorker", "actor",
         ends_step=r"\w*update_weights"),
    Kind(_VERL, "CriticWorker", "critic"),
    Kind(_VERL, r"vLLMHttpServer\w*", "rollout", engine="engine", version="global_steps"),
    Kind(_VERL, r"SGLangHttpServer\w*", "rollout", engine="tokenizer_manager",
         version="global_steps"),
    Kind(_OPENRLHF, "PolicyModelActor", "actor", ends_step="broadcast_to_vllm"),
    Kind(_OPENRLHF, "CriticModelActor", "critic"),
    Kind(_OPENRLHF, "ReferenceModelActor", "ref"),
    Kind(_OPENRLHF, "RewardModelActor", "reward"),
    Kind(_OPENRLHF, "RolloutRayActor", "rollout", engine="llm"),
    Kind(_NEMO, r"(DTensor|Megatron)(Quant)?PolicyWorker(V2)?", "actor",
         ends_step="train(_presharded)?|finish_train_step_presharded"),
    Kind(_NEMO, r"(DTensor|Megatron)ValueWorker(V2)?", "critic"),
    Kind(_NEMO, r"Vllm(Quant)?(Async)?GenerationWorker", "rollout", engine="llm"),
    Kind(_NEMO, "SGLangGenerationWorker", "rollout", engine="url:get_base_url"),
    Kind(_SKYRL, r"(FSDP|Megatron)PolicyWorkerBase", "actor",
         ends_step="broadcast_to_inference_engines"),
    Kind(_SKYRL, r"(FSDP|Megatron)CriticWorkerBase", "critic"),
    Kind(_SKYRL, r"(FSDP|Megatron)RefWorkerBase", "ref"),
    Kind(_SKYRL, "VLLMServerActor", "rollout", engine="url:get_server_info", server="vllm"),
    Kind("slime", r"(Megatron|FSDP)TrainRayActor", "actor", ends_step="train"),
    Kind("slime", "SGLangEngine", "rollout", engine="url:get_url"),
    Kind("slime", "RolloutManager", "rollout_manager", is_only_watched=True),
)  # fmt: skip


def kind_of(kind: str, name: str, kinds: Sequence[Kind] = KINDS) -> Kind | None:
    """Return the kind of an actor of the class *kind* called *name*; None: it is unknown."""
    return next((one for one in kinds if one.matches(kind, name)), None)
