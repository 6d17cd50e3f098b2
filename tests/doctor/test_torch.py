"""Torch in the doctor: missing, or broken by an extension."""

import pytest

from tests.core.distributions import install
from tests.doctor.running import doctor

pytestmark = pytest.mark.slow

NO_TORCH = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Blocker())
"""
BROKEN = """
def autoload():
    raise ImportError("libhccl.so: cannot open shared object file")

def fine():
    pass
"""


@pytest.fixture(name="site")
def _site(tmp_path, monkeypatch):
    """Return a folder on the path of every child, for a sitecustomize or a distribution."""
    (tmp_path / "site").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path / "site"


@pytest.fixture(name="file")
def _file(tmp_path):
    file = tmp_path / "profile.yaml"
    file.write_text(
        f"run_dir: {tmp_path}/runs\ntool: torch\nsteps: [1]\n"
        "roles:\n  actor: {options: {torch: {contents: [cpu, cuda]}}}\n"
    )
    return file


def test_an_environment_without_torch_is_named(site, file):
    """A tool that cannot import torch is BAD with the advice to install it."""
    (site / "sitecustomize.py").write_text(NO_TORCH)

    told = doctor(file)

    assert told.code == 1
    why = "cannot be imported: No module named 'torch'; install torch in this environment"
    assert told["BAD"] == [f"tool torch of actor: failed: torch: {why}"]


def test_an_extension_that_breaks_torch_is_named_with_the_way_out(site, file, monkeypatch):
    """A torch.backends extension that breaks `import torch` is BAD with the variable to set."""
    offers = "[torch.backends]\nsome_npu = {module}:autoload\n"
    install(monkeypatch, site, "some-npu", BROKEN, offers)

    told = doctor(file)
    switched = doctor(file, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})

    (line,) = (line for line in told["BAD"] if line.startswith("torch.backends: "))
    assert line.startswith("torch.backends: some_npu (some-npu): breaks every `import torch`, ")
    assert "Failed to load the backend extension: some_npu" in line
    assert "(cause: ImportError: libhccl.so: cannot open shared object file)" in line
    assert line.endswith(
        "; set TORCH_DEVICE_BACKEND_AUTOLOAD=0 for the run, or repair or uninstall it"
    )
    assert any(line.startswith("tool torch of actor: failed: ") for line in told["BAD"])
    assert any(line.startswith("torch.backends: some_npu") for line in switched["warn"])
    assert any(line.startswith("tool torch of actor: recorded") for line in switched["ok"])
