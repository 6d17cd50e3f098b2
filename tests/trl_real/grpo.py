"""GRPO in the real TRL with its colocated vLLM on a CPU: `grpo.py FOLDER` writes the run there."""

import os
import sys

from examples.ray_rl.tiny_model import QUIET, build

os.environ |= {**QUIET, "CUDA_VISIBLE_DEVICES": ""}

from datasets import Dataset
from transformers import AutoConfig, AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

from rlprof_trl import RlprofCallback


def main(folder):
    model = build(f"{folder}/model")
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model)).save_pretrained(model)
    roles = {
        "actor": {"phases": ["forward", "optimizer"]},
        "rollout": {"engine": "vllm", "phases": ["rollout"]},
    }
    config = {"run_dir": f"{folder}/runs", "tool": "torch", "steps": [2], "roles": roles}
    args = GRPOConfig(
        output_dir=f"{folder}/out", use_cpu=True, bf16=False, per_device_train_batch_size=4,
        num_generations=4, max_completion_length=8, max_steps=2, report_to=[], save_strategy="no",
        gradient_accumulation_steps=2, use_vllm=True, vllm_mode="colocate",
        vllm_gpu_memory_utilization=0.1, vllm_max_model_length=64,
    )  # fmt: skip
    cb = RlprofCallback(config)
    trainer = GRPOTrainer(
        model=model, args=args, callbacks=[cb],
        train_dataset=Dataset.from_list([{"prompt": f"{i} + 1 ="} for i in range(16)]),
        reward_funcs=lambda completions, **_: [float(len(set(text))) for text in completions],
    )  # fmt: skip
    trainer.vllm_generation.sync_weights = lambda: None  # vLLM on a CPU packs its weights
    cb.watch(trainer).train()


if __name__ == "__main__":
    main(sys.argv[1])
