"""A trainer, and stand-ins for the modules of SGLang."""

import os
import sys
import tempfile
from types import ModuleType, SimpleNamespace

import pytest

from rlprof_sglang import _guard, _refusals, inside
from tests.engine_parts.lab import Lab
from tests.fakes.sglang_engines import installed, loops


@pytest.fixture(autouse=True)
def _loops_are_closed():
    yield
    while loops:
        loops.pop().close()


@pytest.fixture(autouse=True)
def _death_is_seen_soon(monkeypatch):
    """Check every 50 ms whether an engine is alive, rather than twice a second."""
    monkeypatch.setattr("rlprof_engine.calls._LOOK_S", 0.05)


@pytest.fixture(name="lab")
def _lab(tmp_path):
    return Lab(tmp_path, "sglang", profiler_dir=str(tmp_path / "traces"))


@pytest.fixture(name="modules")
def _modules(monkeypatch):
    """Import the stand-ins, and clear this machine's variables for SGLang and rlprof."""
    for name in [name for name in os.environ if name.startswith(("SGLANG_", "RLPROF_"))]:
        monkeypatch.delenv(name)
    with installed():
        yield


@pytest.fixture(name="inside")
def _inside(modules, monkeypatch, tmp_path):
    """Have SGLang load rlprof's plugin in its schedulers, on a machine without CUDA."""
    torch = ModuleType("torch")
    torch.cuda = SimpleNamespace(is_available=lambda: False)
    torch.autograd = SimpleNamespace(_profiler_enabled=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.autograd", torch.autograd)
    monkeypatch.setenv("RLPROF_SGLANG", "1")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("_scheduler", "_answer"):
        monkeypatch.setattr(inside, name, getattr(inside, name))
    monkeypatch.setattr(_guard, "last_why", "")
    monkeypatch.setattr(_refusals, "ours_until", 0.0)
    monkeypatch.setattr(inside.multiprocessing, "parent_process", object)  # SGLang's main process
    inside.install()
