"""The tool `npu` on the real torch_npu keeps every law of tools."""

from __future__ import annotations

import os

import pytest
import torch

from rlprof.testing import ToolTests
from rlprof_npu import Npu

pytestmark = pytest.mark.slow


class TestNpu(ToolTests):
    plugin = Npu
    options = {"contents": ["npu", "cpu", "shapes"]}

    @pytest.fixture(autouse=True)
    def _with_msprof(self, msprof, monkeypatch):
        """Let the analysis find what stands in for msprof."""
        monkeypatch.setenv("PATH", f"{msprof}{os.pathsep}{os.environ['PATH']}")

    def work(self):
        """Do one seeded step of a small network, and return its gradient."""
        torch.manual_seed(7)
        layer = torch.nn.Linear(8, 8)
        layer(torch.ones(4, 8)).square().sum().backward()
        return layer.weight.grad.tolist()
