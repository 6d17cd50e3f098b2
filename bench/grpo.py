"""GRPO by the real TRL on one GPU, with and without rlprof: `bench/grpo.py FOLDER [--steps 12]`.

A transformer of 0.2 billion random weights generates by itself, without an engine. The numbers
that TRL logs and the weights must be equal to the bit; then `rlprof why` has its say. Needs
transformers, trl and datasets.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from _measure import machine, verdict
from datasets import Dataset
from transformers import AutoConfig, AutoModelForCausalLM, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

import rlprof
from rlprof_trl import RlprofCallback

TINY_MODEL = Path(__file__).parent.parent / "examples/ray_rl/tiny_model.py"
IS_GPU = torch.cuda.is_available()
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 12,
         "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 64}  # fmt: skip
LENGTH = 64 if IS_GPU else 8


def train(
    folder: str, model: str, steps: int, callbacks: list[Any]
) -> tuple[list[Any], float, Any]:
    """Return the numbers that TRL logs without its times, the seconds, and the weights."""
    args = GRPOConfig(
        output_dir=f"{folder}/out", use_cpu=not IS_GPU, bf16=IS_GPU, report_to=[],
        per_device_train_batch_size=16, num_generations=8, max_completion_length=LENGTH,
        max_steps=steps, save_strategy="no", gradient_accumulation_steps=2, logging_steps=1,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, args=args, callbacks=callbacks,
        train_dataset=Dataset.from_list([{"prompt": f"{i} + 1 ="} for i in range(64)]),
        reward_funcs=lambda completions, **_: [float(len(set(text))) for text in completions],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    for one in callbacks:
        one.watch(trainer)
    began = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - began
    numbers = [{name: value for name, value in line.items() if "time" not in name
                and "per_second" not in name}
               for line in trainer.state.log_history]  # fmt: skip
    return numbers, took, [one.detach().cpu() for one in trainer.model.parameters()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    device = torch.cuda.get_device_name() if IS_GPU else "no GPU"
    print(f"grpo: {device}; {machine()}, torch {torch.__version__}")
    torch.use_deterministic_algorithms(True, warn_only=True)
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    model = f"{args.folder}/model"
    subprocess.run([sys.executable, str(TINY_MODEL), model], check=True)
    config = AutoConfig.from_pretrained(model)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(
        type(config)(**(config.to_dict() | (LARGE if IS_GPU else {})))
    ).save_pretrained(model)
    roles = {"actor": {"phases": ["rollout", "forward", "backward", "optimizer"]}}
    profile = {"run_dir": f"{args.folder}/runs", "tool": "torch", "steps": [4], "roles": roles}
    train(args.folder, model, 2, [])  # warms up
    bare = train(args.folder, model, args.steps, [])
    callback = RlprofCallback(profile)
    ours = train(args.folder, model, args.steps, [callback])
    assert callback.prof.run_dir
    run = rlprof.read(callback.prof.run_dir)
    print(f"  {args.steps} steps: {bare[1]:.1f} s bare, {ours[1]:.1f} s with step 4 recorded")
    print(f"  {len(bare[0])} lines, {sum(map(len, bare[0]))} numbers")
    assert run.captures
    holds = [
        verdict("lines of numbers unequal",
                sum(a != b for a, b in zip(bare[0], ours[0], strict=True)), 0, ""),
        verdict("weights unequal",
                sum(not torch.equal(*two) for two in zip(bare[2], ours[2], strict=True)), 0, ""),
        verdict("captures not whole", sum(one.state != "whole" for one in run.captures), 0, ""),
    ]  # fmt: skip
    for command in ("ls", "why"):
        subprocess.run([sys.executable, "-m", "rlprof", command, str(run.path)], check=True)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
