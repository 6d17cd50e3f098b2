"""How the signatures are read out of the sources of vLLM."""

from __future__ import annotations

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
