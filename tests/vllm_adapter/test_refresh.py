"""How the signatures are read out of wheels, and what is told when a wheel cannot be had."""

from __future__ import annotations

import json
import subprocess
import zipfile
from contextlib import contextmanager

import pytest

from tests.vllm_adapter import signatures, wheels
from tests.vllm_adapter.extract import described

ASYNC = """
class EngineClient:
    async def is_paused(self) -> bool: ...

class AsyncLLM(EngineClient):
    def __init__(self):
        self.output_handler: object = None
        self.vllm_config = None

    async def start_profile(self, prefix: str | None = None, *, most: int = 0, **more) -> None:
        raise ImportError("nobody runs this")

    @property
    def errored(self) -> bool: ...
"""

SOURCES = {
    "vllm/v1/engine/async_llm.py": ASYNC,
    "vllm/config/profiler.py": (
        "class ProfilerConfig:\n    profiler: str | None = None\n    activities: list = "
        "Field(default=None, min_length=1)\n    delay_iterations: int = Field(default=0, ge=0)\n"
    ),
    "vllm/envs.py": "VLLM_TORCH_PROFILER_DIR = 1\nVLLM_PORT = 2\n",
    "vllm/v1/engine/output_processor.py": (
        "class OutputProcessor:\n    def __init__(self):\n        self.request_states = {}\n"
    ),
    "vllm/entrypoints/a/api.py": (
        "@router.post('/start_profile')\n"
        "async def start(raw_request: Request, body: Body | None = None): ...\n"
    ),
    "vllm/entrypoints/a/protocol.py": "class Body(BaseModel):\n    prefix: str = Field('x')\n",
    "vllm/plugins/__init__.py": "DEFAULT_PLUGINS_GROUP = 'vllm.general_plugins'\n",
    "vllm/broken.py": "this is no Python",
}


def test_a_release_is_described_by_its_sources_alone():
    """Nothing of it is imported; what is not there is null, and what is far away is not read."""
    said = described(SOURCES)

    assert said["AsyncLLM"]["start_profile"] == (
        "async def start_profile(self, prefix=None, *, most=0, **more)"
    )
    assert said["AsyncLLM"]["is_paused"] == "async def is_paused(self)"
    assert said["AsyncLLM"]["stop_profile"] is None
    assert said["AsyncLLM.attributes"] == ["errored", "output_handler", "vllm_config"]
    assert said["ProfilerConfig"] == {
        "profiler": "None", "activities": "None", "delay_iterations": "0",
    }  # fmt: skip
    assert said["variables"] == ["VLLM_TORCH_PROFILER_DIR"]
    assert (said["OutputProcessor.request_states"], said["request_states.pop"]) == (True, False)
    assert said["POST /start_profile"] == {
        "file": "vllm/entrypoints/a/api.py",
        "takes": ["Request", "Body | None"],
        "body": {"prefix": "Field('x')"},
    }
    assert said["plugin_group"] == "vllm.general_plugins"


@pytest.fixture(name="index")
def _index(tmp_path, monkeypatch):
    """Return what an index holds, requirement → sha256 it states; the script writes elsewhere."""
    held = {}
    file = tmp_path / "vllm-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as packed:
        for path, text in SOURCES.items():
            packed.writestr(path, text)

    def stated(requirement):
        if requirement not in held:
            raise wheels.NotHad(f"{requirement}: pip install: ERROR: No matching distribution")
        return file.name, held[requirement] or wheels.sha256(file)

    @contextmanager
    def fetched(_):
        yield file

    monkeypatch.setattr(wheels, "stated", stated)
    monkeypatch.setattr(wheels, "fetched", fetched)
    monkeypatch.setattr(signatures, "FILE", tmp_path / "signatures.json")
    return held


def test_a_refresh_writes_what_it_read_and_goes_on_after_what_it_could_not_have(index, capsys):
    """A line for each release; the exit status says that one of them is missing."""
    index["vllm==1.0"] = ""

    code = signatures.main(["--refresh", "vllm==0.9", "vllm==1.0"])

    kept = signatures.kept()
    assert code == 1
    assert list(kept) == ["vllm==1.0"]
    assert kept["vllm==1.0"]["wheel"] == "vllm-1.0-py3-none-any.whl"
    assert len(kept["vllm==1.0"]["sha256"]) == 64
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] vllm==0.9: cannot be had: pip install: ERROR: No matching distribution",
        "[2/2] vllm==1.0: vllm-1.0-py3-none-any.whl",
    ]


def test_a_wheel_that_is_not_the_stated_one_is_not_read(index, capsys):
    """Its checksum is computed, and compared with what the index says."""
    index["vllm==1.0"] = "0" * 64

    assert signatures.main(["--refresh", "vllm==1.0"]) == 1
    assert "is not the file the index states" in capsys.readouterr().err
    assert not signatures.FILE.exists()


def test_a_check_compares_with_the_index(index, capsys):
    """A wheel that was replaced, and one that was never read, are told; nothing is written."""
    index["vllm==1.0"] = ""
    signatures.main(["--refresh", "vllm==1.0"])
    before = signatures.FILE.read_bytes()
    capsys.readouterr()

    well = signatures.main(["--check", "vllm==1.0"])
    index["vllm==1.0"] = "1" * 64
    code = signatures.main(["--check", "vllm==1.0", "vllm==2.0"])

    assert (well, code) == (0, 1)
    assert capsys.readouterr().err.splitlines() == [
        "[1/1] vllm==1.0: as it was read",
        "[1/2] vllm==1.0: the index has another wheel; run --refresh",
        "[2/2] vllm==2.0: was never read; run --refresh",
    ]
    assert before == signatures.FILE.read_bytes()


def test_no_address_is_kept_or_told(monkeypatch):
    """What pip says of its index and of this machine's folders stays here."""
    text = signatures.FILE.read_text(encoding="utf-8")

    def fail(*_, **__):
        lines = "Looking in\nERROR: cannot reach https://a.host/simple/vllm/ or /home/me/wheels\n"
        raise subprocess.CalledProcessError(1, "pip", stderr=lines)

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(wheels.NotHad) as raised:
        wheels.stated("vllm==1.0")

    assert "://" not in text
    assert json.loads(text) == signatures.kept()
    assert str(raised.value) == "vllm==1.0: pip install: ERROR: cannot reach ... or ..."
