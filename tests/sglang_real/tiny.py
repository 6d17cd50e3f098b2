"""The language model of examples/ray_rl for SGLang on a CPU, in seconds and little memory."""

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
"""Engine arguments besides the model. An idle scheduler that does not sleep occupies a core."""


def one_replica():
    """Return SMALL with a port for the ranks: the port that SGLang chooses may get taken."""
    return {**SMALL, "nccl_port": free_port()}


QUIET = {
    "HF_HUB_OFFLINE": "1",
    "SGLANG_USE_CPU_ENGINE": "1",
    "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0",
    "TORCHDYNAMO_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
}
"""The environment of SGLang on a CPU, where dynamo fails on the stand-in for triton.

A health check must run no forward step, so that steps can be counted.
"""
