"""One session of nsys, from inside the program: windows begun and ended by the session's name."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof import CaptureError
from rlprof_nsys._mark import OPEN
from rlprof_nsys._report import Found, await_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_nsys._program import Program, Said

_LEAST_S = 1.0
_BRIEF_S = 0.1
_ENDED_S = 5.0
_IDLE = "not applicable in this state"
_BUSY = "not allowed in this state"


@attrs.define
class Session:
    """The session this process is in."""

    program: Program
    name: str
    """Its name, or its id."""
    is_in_doubt: bool = False
    """A call was not answered: nsys may be collecting."""

    def start(self, folder: Path, options: Sequence[str], *, within_s: float) -> None:
        """Begin to collect into *folder*; raise CaptureError if nsys does not."""
        end = time.monotonic() + within_s
        if self.is_in_doubt:
            self._settle(within_s)
        self._see_that_it_is_there(max(_BRIEF_S, end - time.monotonic()))
        args = [f"--session={self.name}", *options, "--force-overwrite=true"]
        output = f"--output={str(folder / 'report').replace('%', '%%')}"
        left = max(_BRIEF_S, end - time.monotonic())
        said = self.program.call("start", *args, output, timeout_s=left)
        if said.code != 0:
            self.is_in_doubt = said.code is None
            if _BUSY in said.text:  # collecting, or shut down just now
                self._see_that_it_is_there(_LEAST_S)
            raise CaptureError(self._refusal("start", said, within_s))
        self._leave_word(folder)

    def stop(self, folder: Path, *, within_s: float) -> Found:
        """End it, and return the report once it is whole."""
        end = time.monotonic() + within_s
        said = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
        self.is_in_doubt = said.code is None
        left = max(_LEAST_S, end - time.monotonic())
        if said.code != 0:  # it may have ended the window by itself, for its time was over
            left = min(left, _ENDED_S if _IDLE in said.text else _LEAST_S)
        found = self._await(folder, said, left)
        if not found.file and said.code != 0:
            found = Found(why=self._refusal("stop", said, within_s))
        self._leave_word(None)
        return found

    def await_range(self, folder: Path, *, within_s: float) -> Found:
        """Return the report of a range that is over; where none began, end the window."""
        end = time.monotonic() + within_s
        report = folder / "report.nsys-rep"
        while not report.exists() and time.monotonic() < min(end, end - within_s + 10):
            time.sleep(0.02)
        if not report.exists():
            said = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
            self.is_in_doubt = said.code is None
            self._leave_word(None)
            return Found(why="nsys has not seen the range that the window is")
        found = await_report(
            self.program, folder, said="", is_done=False,
            within_s=max(_LEAST_S, end - time.monotonic()),
        )  # fmt: skip
        self._leave_word(None)
        return found

    def _await(self, folder: Path, said: Said, within_s: float) -> Found:
        is_done = said.code == 0
        return await_report(
            self.program, folder, said=said.text, is_done=is_done, within_s=within_s
        )

    def _settle(self, within_s: float) -> None:
        """End what a call that was not answered may have begun."""
        said = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
        self.is_in_doubt = said.code is None
        if self.is_in_doubt:
            raise CaptureError(self._refusal("stop", said, within_s))

    def _see_that_it_is_there(self, within_s: float) -> None:
        """Raise CaptureError if it is gone: `nsys start` would make another, with nobody in it."""
        known = self.program.sessions(timeout_s=within_s)
        if known is not None and self.name not in known:
            raise CaptureError(self._gone)

    @property
    def _gone(self) -> str:
        return (
            f"nsys has no session {self.name} any more: it was shut down, or its agent died; "
            "the program goes on without it"
        )

    def _refusal(self, verb: str, said: Said, within_s: float) -> str:
        if said.code is None:
            return f"nsys {verb} did not return within {within_s:g} s, and was ended"
        if "Failed to find session" in said.text:
            return self._gone
        if _BUSY in said.text:
            return (
                f"session {self.name} is collecting already: one process at a time can have a "
                "window in it, and none of a program started by `nsys profile`; start each "
                "process by its own launcher"
            )
        return f"nsys {verb}: {said.sentence}"

    def _leave_word(self, folder: Path | None) -> None:
        """Tell the launcher which window is open: it ends it where the program does not."""
        if not self.program.folder:
            return
        word = Path(self.program.folder) / OPEN
        with suppress(OSError):
            if folder is None:
                word.unlink(missing_ok=True)
            else:
                word.write_text(str(folder), encoding="utf-8")
