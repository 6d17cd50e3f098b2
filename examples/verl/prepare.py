"""What the loop trains on: a tiny model, 64 questions and a reward, written into a folder.

`python examples/verl/prepare.py FOLDER`
"""

from __future__ import annotations

import sys
from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)
REWARD = """\
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    return float(len(set(solution_str)) % 7) / 7
"""


def prepare(folder: Path) -> None:
    """Write model, data and reward into *folder*."""
    import pandas as pd
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    sys.path.insert(0, str(Path(__file__).parent.parent / "ray_rl"))
    import tiny_model

    model = str(folder / "model")
    tiny_model.build(model)
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(model)
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig.from_pretrained(model)).float().save_pretrained(model)
    rows = [
        {
            "data_source": "toy",
            "prompt": [{"role": "user", "content": f"{number} plus {number + 1}"}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(2 * number + 1)},
            "extra_info": {"index": number, "split": "train"},
        }
        for number in range(64)
    ]
    pd.DataFrame(rows).to_parquet(folder / "train.parquet")
    pd.DataFrame(rows[:4]).to_parquet(folder / "test.parquet")
    (folder / "reward.py").write_text(REWARD)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
