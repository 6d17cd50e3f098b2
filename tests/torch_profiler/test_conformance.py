"""The tools `torch` and `torch_memory` keep every law of tools."""

from __future__ import annotations

import pytest
import torch

from rlprof.testing import ToolTests
from rlprof_torch import Torch, TorchMemory, _memory
from tests.torch_profiler.test_memory import Allocator

pytestmark = pytest.mark.slow


def train_step():
    """Do one seeded step of a small network, and return its gradient."""
    torch.manual_seed(7)
    layer = torch.nn.Linear(8, 8)
    layer(torch.ones(4, 8)).square().sum().backward()
    return layer.weight.grad.tolist()


class TestTorch(ToolTests):
    plugin = Torch
    options = {"contents": ["cpu", "shapes"]}

    def work(self):
        return train_step()


class TestTorchMemoryOnAStandIn(ToolTests):
    """The same on an allocator that only takes the calls, for machines without a device."""

    plugin = TorchMemory
    options = {"max_entries": 1000}
    produces = "files"

    @pytest.fixture(autouse=True)
    def _allocator(self, monkeypatch):
        monkeypatch.setattr(_memory, "_allocator", Allocator)


class TestTorchMemory(ToolTests):
    plugin = TorchMemory
    options = {"max_entries": 1000, "stacks": True}
    produces = "files"

    @property
    def works_here(self):
        return torch.cuda.is_available() or "needs a CUDA device: only its allocator keeps history"

    def work(self):
        return torch.ones(1000, device="cuda").cumsum(0).tolist()
