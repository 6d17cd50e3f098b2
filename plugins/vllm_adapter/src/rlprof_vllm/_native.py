"""Starts and stops vLLM's own profiler, and fetches its files from its folder.

It does not report success: only its files show whether a call worked.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_vllm._facts import CONTENTS
from rlprof_vllm._launch import native_iterations
from rlprof_vllm._server import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof import Window
    from rlprof_vllm._options import VllmOptions
    from rlprof_vllm._server import Engine

FILES = "native"
"""The subfolder for the files of vLLM's profiler, in the window's folder."""

_KWARGS = {"stack": "with_stack", "shapes": "record_shapes", "memory": "profile_memory",
           "flops": "with_flops"}  # fmt: skip
"""Torch's names for contents; since 0.33 vLLM takes them for one window."""
_ON_NPU = {
    "shapes": "vllm-ascend ignores it",
    "flops": "vllm-ascend ignores it",
    "stack": "vllm-ascend records modules instead",
}
"""Contents that vllm-ascend ignores, or reads as something else."""
_BUSY = "ProfilerAlreadyActiveError"
_NO_PROFILER = re.compile(r"profil\w+ is not enabled", re.IGNORECASE)


class Native:
    """One window of vLLM's own profiler."""

    def __init__(self, engine: Engine, options: VllmOptions, contents: Sequence[str]) -> None:
        self._engine = engine
        self._iterations = options.iterations
        wanted = options.profiler_dir
        self._profiler_dir = None if wanted is None else str(Path(wanted).expanduser().absolute())
        self._contents = contents
        self._prefix = ""
        self._before: frozenset[str] = frozenset()
        self._may_run = False
        self.applied: dict[str, Any] = {}
        self.unsupported: dict[str, str] = {}

    async def start(self, window: Window, run_id: str) -> None:
        """Start it, with the arguments that its version knows."""
        facts = self._engine.facts
        given: dict[str, Any] = {}
        if facts.has_prefix:
            given["profile_prefix"] = self._prefix = _prefix(window, run_id)
        self._count(given)
        if facts.profiler is not None and self._profiler_dir not in (None, facts.directory):
            self.unsupported["profiler_dir"] = f"the engine was launched with {facts.directory}"
        self._choose_contents(given)
        self._before = frozenset(_names(facts.directory))
        self._may_run = True
        try:
            await self._engine.call("start_profile", **given)
        except RefusedError as exc:
            self._may_run = False  # and a session that runs is not ours to stop
            raise CaptureError(str(exc)) from None
        except Exception as exc:
            self._may_run = not _has_not_begun(exc)
            if type(exc).__name__ == _BUSY:
                raise CaptureError("vllm: somebody else is profiling this engine") from None
            raise CaptureError(f"vllm: start_profile: {_described(exc)}") from exc

    def _count(self, given: dict[str, Any]) -> None:
        """Ask for the chosen engine steps, or report those that its launch fixed."""
        facts, chosen = self._engine.facts, self._iterations
        if chosen is None and not any(facts.at_launch.values()):
            return
        if facts.has_iterations:
            none = {"delay_iterations": 0, "max_iterations": 0}
            given |= none if chosen is None else native_iterations(chosen)
            if chosen is not None:
                self.applied["iterations"] = attrs.asdict(chosen)
        elif facts.profiler is None:
            self.unsupported["iterations"] = "this engine does not say what it was launched with"
        elif chosen is not None and facts.at_launch == native_iterations(chosen):
            self.applied["iterations"] = "by the launch, the same for all windows"
        else:
            self.unsupported["iterations"] = (
                "this vLLM counts engine steps only as it was launched to; launch it with the "
                "arguments that rlprof.launch gives"
            )

    def _choose_contents(self, given: dict[str, Any]) -> None:
        """Ask for the contents of this window, or report what the launch has fixed."""
        facts = self._engine.facts
        if facts.is_npu:
            asked = [word for word in _ON_NPU if word in self._contents]
            self.unsupported |= {f"contents: {word}": _ON_NPU[word] for word in asked}
        elif "profiler_kwargs" in facts.parameters:
            given["profiler_kwargs"] = {
                key: word in self._contents for word, key in _KWARGS.items()
            }
            return
        known = () if facts.profiler is None else CONTENTS
        for word in [word for word in known if not (facts.is_npu and word in _ON_NPU)]:
            is_asked, is_there = word in self._contents, word in facts.contents
            if is_asked and not is_there:
                self.unsupported[f"contents: {word}"] = "the engine was launched without it"
            elif is_there and not is_asked:
                self.applied.setdefault("more", []).append(word)

    async def stop(self, folder: Path) -> None:
        """Stop it if it may be running, and fetch its files; it is no error if nothing runs."""
        if not self._may_run:
            return
        self._may_run = False
        try:
            await self._engine.call("stop_profile")
        except Exception as exc:
            raise CaptureError(f"vllm: stop_profile: {_described(exc)}") from exc
        finally:
            self._fetch(folder / FILES)

    def _fetch(self, into: Path) -> None:
        """Move new files away, or they would mix with those of the next window."""
        directory = self._engine.facts.directory
        if not directory:
            return
        new = [name for name in _names(directory) if self._is_ours(name)]
        into.mkdir(parents=True, exist_ok=True)
        for name in new:
            with suppress(FileNotFoundError):  # somebody else deleted it
                shutil.move(str(Path(directory, name)), str(into / name))

    def _is_ours(self, name: str) -> bool:
        if self._prefix:
            return name.startswith(self._prefix)
        return name not in self._before or name.endswith(".txt")  # tables reuse their names


def _prefix(window: Window, run_id: str) -> str:
    """Return a unique name for a session; vLLM allows letters, digits and `._-`."""
    import secrets

    return f"rlprof_step{window.start_step}_{run_id[-20:]}_{secrets.token_hex(4)}".strip("._-")


def _names(directory: str | None) -> list[str]:
    if not directory:
        return []
    try:
        return sorted(entry.name for entry in Path(directory).iterdir())
    except OSError:  # not made before the first session, or on another host
        return []


def _has_not_begun(exc: Exception) -> bool:
    """Whether the error of `start_profile` shows that no worker has begun.

    In that case, a stop would fail in the workers, or end somebody else's session. Until 0.29, it
    could also crash the calling process.
    """
    is_refused = isinstance(exc, TypeError | ValueError)  # by the frontend, before it calls
    return is_refused or type(exc).__name__ == _BUSY or bool(_NO_PROFILER.search(str(exc)))


def _described(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}"[:500]
