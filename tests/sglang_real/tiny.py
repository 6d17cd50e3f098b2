"""The language model of examples/ray_rl as SGLang has it on a CPU, in seconds and little memory."""

from examples.ray_rl.tiny_model import build
from tests.ports import free_port

__all__ = ["QUIET", "SMALL", "build", "one_replica"]

SMALL = {
    "load_format": "dummy",
    "device": "cpu",
    "dtype": "float32",
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "disable_cuda_graph": True,
    "skip_tokenizer_init": True,
    "skip_server_warmup": True,
    "sleep_on_idle": True,
    "mem_fraction_static": 0.1,
    "max_total_tokens": 4096,
    "max_running_requests": 8,
    "log_level": "error",
}
"""Engine arguments beside the model. An idle scheduler that does not sleep would take a core."""


def one_replica():
    """Return these with a port for its ranks: SGLang's choice may be taken before they meet."""
    return {**SMALL, "nccl_port": free_port()}


QUIET = {
    "HF_HUB_OFFLINE": "1",
    "SGLANG_USE_CPU_ENGINE": "1",
    "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0",
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
}
"""What SGLang needs in its environment on a CPU, where dynamo fails on a triton that is none.

That asking for its health is no forward step makes steps countable.
"""
