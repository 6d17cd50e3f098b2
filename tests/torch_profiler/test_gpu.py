"""Both tools on a real GPU; skipped, with the reason, where there is none."""

from __future__ import annotations

import gzip
import json
import pickle

import pytest
import torch

import rlprof

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU; none is here"),
]


def record(tmp_path, tool, body):
    config = {
        "run_dir": str(tmp_path / "runs"), "tool": tool, "steps": [1], "roles": {"actor": {}},
    }  # fmt: skip
    with rlprof.open(config) as prof:
        prof.step(1)
        with prof.phase("update_actor"):
            body()
    (capture,) = rlprof.read(prof.run_dir).captures
    return capture, prof.run_dir / capture.artifacts[0].path


def work():
    x = torch.randn(512, 512).cuda()
    (x @ x).sum().item()


def test_kernels_and_copies_are_in_the_trace(tmp_path):
    """With empty contents the device there is gets recorded: kernels, memcpys, their flows."""
    capture, file = record(tmp_path, "torch", work)

    with gzip.open(file) as stream:
        events = json.load(stream)["traceEvents"]
    categories = {event.get("cat") for event in events}
    assert capture.state == "whole"
    assert capture.applied["device"] == "cuda"
    assert {"kernel", "gpu_memcpy", "cuda_runtime", "ac2g"} <= categories


def test_a_memory_snapshot_loads(tmp_path):
    """The snapshot holds segments and the history of the window."""
    capture, file = record(tmp_path, "torch_memory", work)

    snapshot = pickle.loads(file.read_bytes())
    assert capture.state == "whole"
    assert snapshot["segments"]
    assert any(trace for trace in snapshot["device_traces"])
