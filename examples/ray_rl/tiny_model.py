"""A language model small enough for two cores: two layers, random weights, ten kilobytes on disk.

`python examples/ray_rl/tiny_model.py FOLDER`
"""

from __future__ import annotations

import os
import sys

SMALL = {
    "load_format": "dummy",
    "enforce_eager": True,
    "dtype": "float32",  # bf16 needs AMX, which some hosts have and vLLM 0.31 and 0.32 die of
    "max_model_len": 256,
    "max_num_seqs": 8,
    "kv_cache_memory_bytes": 32 << 20,
}
"""Engine arguments besides the model; without the last, the cache takes a share of all memory."""

QUIET = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",
}
"""What vLLM needs in its environment on a CPU, and to say little."""


def build(folder: str) -> str:
    """Write the model's configuration and a tokenizer of single bytes into *folder*."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*special, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    ends = dict(zip(("pad_token", "bos_token", "eos_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=1024, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    os.environ |= QUIET
    print(build(sys.argv[1]))
