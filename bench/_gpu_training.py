"""What the benchmarks of a GPU train, and the sessions that record it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

import rlprof

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDTH, LAYERS, LENGTH, BATCH = 1024, 12, 512, 16


def training(micro_batches: int = 4) -> tuple[torch.nn.Module, Callable[[], None]]:
    """Return a transformer, and a step: forward and backward in bfloat16, AdamW."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        WIDTH, WIDTH // 64, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
    )
    model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randn(BATCH, LENGTH, WIDTH).cuda()

    def work() -> None:
        for _ in range(micro_batches):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()

    return model, work


def opened(folder: Path, tool: str = "torch", contents: tuple[str, ...] = (), **more: Any) -> Any:
    """Open a session that records every phase of every step."""
    config = {
        "run_dir": str(folder), "tool": tool, "steps": {"every": 1}, "roles": {"actor": {}},
        "tools": {"torch": {"contents": contents or ("cpu", "cuda")}} if tool == "torch" else {},
    } | more  # fmt: skip
    return rlprof.open(config)
