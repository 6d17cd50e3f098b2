"""vLLM as the benchmark of its adapter asks it, and two ways to record it that are not ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from _costs import Call
from _in_worker import INNER, STEPS, STOPS
from _ways import count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class Engine:
    """An AsyncLLM, and the watch in its worker."""

    steps: Sequence[str] = STEPS
    inner = INNER
    stops: Sequence[str] = STOPS

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def stream(self, name: str, tokens: int) -> AsyncIterator[int]:
        """Have a request answered; yield with each answer how many tokens there are."""
        from vllm import SamplingParams

        chosen = SamplingParams(max_tokens=tokens, ignore_eos=True)
        prompt = {"prompt_token_ids": [1, 5, 6]}
        async for output in self._engine.generate(prompt, chosen, name):
            yield len(output.outputs[0].token_ids)

    async def log(self) -> list[Call]:
        """Return and forget the calls."""
        found = (await self._engine.collective_rpc("bench_log"))[0]
        return [Call(*one) for one in found]


class Bare:
    """torch.profiler in the worker, stopped and written by Kineto as raw JSON."""

    def __init__(self, engine: Any, home: Path) -> None:
        self._engine = engine
        self._file = home / "bare.json"

    async def begin(self) -> None:
        await self._engine.collective_rpc("bench_begin")

    async def end(self) -> None:
        await self._engine.collective_rpc("bench_end", args=(str(self._file),))

    def events(self) -> int:
        return count(self._file)


class Theirs:
    """vLLM's own profiler."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._folder = Path(engine.vllm_config.profiler_config.torch_profiler_dir)

    async def begin(self) -> None:
        for file in self._folder.glob("*"):
            file.unlink()
        await self._engine.start_profile()

    async def end(self) -> None:
        await self._engine.stop_profile()

    def events(self) -> int:
        return max(map(count, self._folder.glob("*.pt.trace.json*")))
