"""One window of SGLang's own profiler, in its own folder.

SGLang does not check its arguments, and a failing scheduler ends the whole engine, and often the
hosting process. So the adapter never sends arguments that would make one fail.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rlprof import CaptureError, safe_name
from rlprof_engine.calls import aside
from rlprof_sglang._installed import is_version_2
from rlprof_sglang._request import Request
from rlprof_sglang._server import RefusedError, UnsaidError
from rlprof_sglang._words import STATE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Target, Window
    from rlprof_sglang._options import SglangOptions
    from rlprof_sglang._server import Engine

FILES = "native"
"""The subfolder for the files of SGLang's profiler, in the window's folder."""
State = Literal["idle", "running", "unknown"]
"""The state of our session. `unknown`: a call was not answered, and another may do harm."""

_TRACE = re.compile(r"-TP-\d+.*\.trace\.json\.gz$")
_LATE_S = 20
"""The wait for ranks of a later pipeline stage, which write after the stop is answered."""
_LOOK_S = 0.2


class Native:
    """One window of SGLang's own profiler."""

    def __init__(
        self, engine: Engine, options: SglangOptions, torch: Mapping[str, Any],
        longest_s: float | None = None,
    ) -> None:  # fmt: skip
        self._engine = engine
        self._options = options
        self._torch = torch
        self._longest_s = longest_s
        self.folder: Path | None = None
        """The folder of this window's files, on the engine's host."""
        self._is_given_up = False
        """Whether we have stopped before the start was answered."""
        self.state: State = "idle"
        self.ran: dict[str, int] = {}
        """Steps in the window, if known, by the number of each replica's first scheduler."""
        self.whys: list[str] = []
        """Errors in schedulers that our code there caught."""
        self.applied: dict[str, Any] = {}
        self.unsupported: dict[str, str] = {}

    @property
    def notes(self) -> dict[str, Any]:
        """What its export needs."""
        skips = bool(self.applied.get("iterations", {}).get("skip"))
        folder = str(self.folder or "")
        return {"folder": folder, "ran": self.ran, "whys": self.whys, "skips": skips}

    async def start(self, window: Window, target: Target, below: Path, run_id: str) -> None:
        """Start it."""
        self._check()
        folder = self.folder = self._made(below, window, run_id)
        request = Request(self._options, self._engine.facts, self._torch, self._longest_s)
        fields = request.fields(folder, window, target)
        self.applied, self.unsupported = request.applied, request.unsupported
        self.state = "unknown"  # until it is answered, or refused before it was sent
        try:
            await self._engine.start(fields)
        except TypeError as exc:  # by the frontend, before it calls
            self.state = "idle"
            raise CaptureError(f"sglang: start_profile: {exc}"[:500]) from exc
        except RefusedError:
            self.state = "idle"
            raise
        except UnsaidError as exc:  # our code refuses in all schedulers, and says why
            self.state = "idle" if await self._refused() else "running"
            raise CaptureError("; ".join([str(exc), *self.whys])[:500]) from exc
        except RuntimeError as exc:  # refused by a scheduler; another may have begun
            is_theirs = "already in progress" in str(exc)
            self.state = "idle" if is_theirs else "running"
            if self._is_given_up and not is_theirs:
                await self._undo(folder)
            why = "somebody else is profiling this engine" if is_theirs else f"start_profile: {exc}"
            raise CaptureError(f"sglang: {why}"[:500]) from exc
        if self._is_given_up:
            await self._undo(folder)
            return
        self.state = "running"

    async def _undo(self, folder: Path) -> None:
        """End an abandoned session, because it would fill the memory of the schedulers."""
        await self._engine.stop()
        self.state = "idle"
        shutil.rmtree(folder, ignore_errors=True)

    def _check(self) -> None:
        """Refuse what would end the schedulers, or overwrite their memory: see `_guard`."""
        if is_version_2():
            raise CaptureError(
                "sglang: SGLANG_PROFILE_V2 is set; its profiler ends the schedulers when it is "
                "stopped; unset it"
            )

        facts = self._engine.facts
        if self._options.by_stage and not facts.is_inside:
            raise CaptureError(
                f"sglang: by_stage: SGLang {facts.version or '(of an unknown release)'} overwrites "
                "its schedulers' memory between two stages, and they may crash; launch it with "
                "what rlprof.launch gives, so that rlprof's code there can prevent this"
            )

    def _made(self, below: Path, window: Window, run_id: str) -> Path:
        """Make the window's folder and test it: SGLang would fail at the stop, and die."""
        if not self._engine.is_local and self._options.profiler_dir is None:
            raise CaptureError(
                "sglang: the server is on another host; name a folder that both can see: "
                "profiler_dir"
            )
        own = f"step{window.start_step}_{safe_name(run_id)[-20:]}_{secrets.token_hex(4)}"
        folder = below / own
        try:
            folder.mkdir(parents=True)
            probe = folder / ".rlprof"
            probe.write_text("rlprof has seen that files can be written here\n")
            probe.unlink()
            if self._engine.facts.kind == "http":  # it may run as another user
                folder.chmod(0o777)
        except OSError as exc:
            raise CaptureError(
                f"sglang: profiler_dir: {exc}; SGLang would not survive that, so nothing was asked"
            ) from exc
        return folder

    async def stop(self, folder: Path) -> None:
        """Stop it, in whatever state it is, and fetch its files."""
        state, self.state = self.state, "unknown"
        self._is_given_up = state == "unknown"
        try:
            if state == "running":
                await self._engine.stop()
            if state != "unknown":
                self.state = "idle"
                await self._all_are_there()
                await self._ask_of_it()
        except CaptureError:
            raise
        except Exception as exc:
            raise CaptureError(f"sglang: stop_profile: {type(exc).__name__}: {exc}"[:500]) from exc
        finally:
            await aside(partial(self._fetch, folder / FILES))  # it may be gigabytes

    async def _refused(self) -> bool:
        """Whether our code in the schedulers refused; keep the reason in `whys`."""
        states = await self._states()
        self.whys = [str(one["refused"]) for one in states if one.get("refused")][:1]
        return bool(self.whys)

    async def _states(self) -> list[dict[str, Any]]:
        """Return what our code in the schedulers says; empty if it is not there."""
        if self._engine.facts.is_inside:
            with suppress(Exception):  # the engine is gone
                return [state.get(STATE) or {} for state in await self._engine.states()]
        return []

    async def _ask_of_it(self) -> None:
        """Ask for the number of steps, because a scheduler without steps may leave no trace.

        Also report the errors that our code caught there.
        """
        states = await self._states()
        self.ran = {str(one["number"]): one["ran"] for one in states if "ran" in one}
        self.whys = [f"worker {one['number']}: {one['why']}" for one in states if one.get("why")]

    async def _all_are_there(self) -> None:
        """Wait for the files of ranks that write after the stop is answered."""
        facts = self._engine.facts
        if facts.pp == 1 or facts.nodes > 1 or self.folder is None:
            return
        for _ in range(round(_LATE_S / _LOOK_S)):
            names = [path.name for path in self.folder.iterdir()]
            if sum(bool(_TRACE.search(name)) for name in names) >= facts.workers:
                return
            await asyncio.sleep(_LOOK_S)

    def _fetch(self, into: Path) -> None:
        """Move the files, then remove the folder that the engine wrote this window into."""
        if self.folder is None:
            return
        if not into.parent.exists():  # answered long after the window was over
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        into.mkdir(exist_ok=True)
        with suppress(OSError):
            for path in sorted(self.folder.iterdir()):
                with suppress(FileNotFoundError):  # somebody else deleted it
                    shutil.move(str(path), str(into / path.name))
            if self.state == "idle":
                self.folder.rmdir()
