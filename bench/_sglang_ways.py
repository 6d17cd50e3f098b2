"""SGLang as the benchmark of its adapter asks it, and two ways to record it that are not ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from _costs import Call
from _in_scheduler import INNER, MARK, STEP, STOP
from _ways import count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path


class Engine:
    """A TokenizerManager, and the watch in its scheduler."""

    steps: Sequence[str] = (STEP,)
    inner = INNER
    stops: Sequence[str] = (STOP,)

    def __init__(self, manager: Any, home: Path) -> None:
        self._manager = manager
        self._log = home / "log.json"

    async def stream(self, name: str, tokens: int) -> AsyncIterator[int]:
        """Have a request answered; yield with each answer how many tokens there are."""
        from sglang.srt.managers.io_struct import GenerateReqInput

        chosen = {"max_new_tokens": tokens, "ignore_eos": True}
        request = GenerateReqInput(
            rid=name, input_ids=[1, 5, 6], sampling_params=chosen, stream=True
        )
        try:
            async for output in self._manager.generate_request(request, None):
                yield output["meta_info"]["completion_tokens"]
        finally:
            self._manager.abort_request(name)  # nothing, if it has ended

    async def log(self) -> list[Call]:
        """Return and forget the calls."""
        await start_profile(self._manager, output_dir=f"{MARK}log {self._log}")
        return [Call(*one) for one in json.loads(self._log.read_bytes())]


class Bare:
    """torch.profiler in the scheduler, stopped and written by Kineto as raw JSON."""

    def __init__(self, manager: Any, home: Path) -> None:
        self._manager = manager
        self._file = home / "bare.json"

    async def begin(self) -> None:
        await start_profile(self._manager, output_dir=f"{MARK}begin {self._file}")

    async def end(self) -> None:
        await start_profile(self._manager, output_dir=f"{MARK}end {self._file}")

    def events(self) -> int:
        return count(self._file)


class Theirs:
    """SGLang's own profiler."""

    def __init__(self, manager: Any, folder: Path, **asked: Any) -> None:
        self._manager = manager
        self._folder = folder
        self._asked = asked

    async def begin(self) -> None:
        for file in self._folder.glob("*"):
            file.unlink()
        await start_profile(self._manager, output_dir=str(self._folder), **self._asked)

    async def end(self) -> None:
        await self._manager.stop_profile()

    def events(self) -> int:
        (file,) = [one for one in self._folder.iterdir() if "-TP-" in one.name]
        merged = [one for one in self._folder.iterdir() if "merged" in one.name]
        assert len(merged) == ("merge_profiles" in self._asked), merged
        return count(file)


async def start_profile(manager: Any, **asked: Any) -> None:
    """Start SGLang's profiler, or what has taken its place."""
    from sglang.srt.managers.io_struct import ProfileReq

    await manager.start_profile(ProfileReq(**asked))
