"""One session of nsys, from inside the program: windows begun and ended by the session's name."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import attrs

from rlprof import CaptureError
from rlprof_nsys._report import Found, await_report
from rlprof_nsys._shared import Word, give, is_alive, join, leave_word, read_word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlprof_nsys._program import Program, Said

_LEAST_S = 1.0
_BRIEF_S = 0.1
_ENDED_S = 5.0
_AGAIN_S = 0.1
_OTHERS_S = 2.0
"""How long another process may take to tell of the window it has begun, or for its self-test."""
_SEEN_S = 0.005
"""`nsys start` has returned 1.1 ms before it saw ranges, once in 14 windows, never in 55 others."""
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

    def start(
        self, folder: Path, options: Sequence[str], word: Word | None, *, within_s: float
    ) -> Word | None:
        """Begin to collect into *folder*; raise CaptureError if nsys does not.

        *word* is told to the processes that share the session, if there is one. Where one of them
        has begun the same window its word is returned: that window is joined.
        """
        end = time.monotonic() + within_s
        patience = time.monotonic() + min(within_s, _OTHERS_S)
        if self.is_in_doubt:
            self._settle(within_s)
        self._see_that_it_is_there(max(_BRIEF_S, end - time.monotonic()))
        args = [f"--session={self.name}", *options, "--force-overwrite=true"]
        output = f"--output={str(folder / 'report').replace('%', '%%')}"
        while True:
            other = self._joined(word, folder)
            if other is not None:
                return other
            left = max(_BRIEF_S, end - time.monotonic())
            said = self.program.call("start", *args, output, timeout_s=left)
            if said.code == 0:
                break
            if _BUSY in said.text:  # collecting, or shut down just now
                self._see_that_it_is_there(_LEAST_S)
            if _BUSY not in said.text or not self._is_shared or time.monotonic() >= patience:
                self.is_in_doubt = said.code is None
                raise CaptureError(self._refusal("start", said, within_s))
            time.sleep(_AGAIN_S)
        if word is not None:
            leave_word(self.program.folder, word)
        time.sleep(_SEEN_S)
        return None

    def stop(self, folder: Path, *, within_s: float) -> Found:
        """End it, and return the report once it is whole."""
        end, ended_ns = time.monotonic() + within_s, time.time_ns()
        self._let_nobody_join()
        said = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
        self.is_in_doubt = said.code is None
        left = max(_LEAST_S, end - time.monotonic())
        if said.code != 0:  # it may have ended the window by itself, for its time was over
            left = min(left, _ENDED_S if _IDLE in said.text else _LEAST_S)
        found = self._await(folder, said, left)
        if not found.file and said.code != 0:
            found = Found(why=self._refusal("stop", said, within_s))
        return self._ended(folder, found, ended_ns)

    def await_range(self, folder: Path, *, within_s: float) -> Found:
        """Return the report of a range that is over; where none began, end the window."""
        end, ended_ns = time.monotonic() + within_s, time.time_ns()
        self._let_nobody_join()
        report = folder / "report.nsys-rep"
        while not report.exists() and time.monotonic() < min(end, end - within_s + 10):
            time.sleep(0.02)
        if not report.exists():
            said = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
            self.is_in_doubt = said.code is None
            found = Found(why="nsys has not seen the range that the window is")
            return self._ended(folder, found, ended_ns)
        found = await_report(
            self.program, folder, said="", is_done=False,
            within_s=max(_LEAST_S, end - time.monotonic()),
        )  # fmt: skip
        return self._ended(folder, found, ended_ns)

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
        if "Failed to find session" in said.text or "Connection refused" in said.text:
            return self._gone
        if _BUSY in said.text:
            return (
                f"session {self.name} is collecting already: one process at a time can have a "
                "window in it, and none of a program started by `nsys profile`; start each "
                "process by its own launcher"
            )
        return f"nsys {verb}: {said.sentence}"

    @property
    def _is_shared(self) -> bool:
        """Whether others can be told of a window: the launcher has a folder for that."""
        return bool(self.program.folder)

    def _joined(self, own: Word | None, folder: Path) -> Word | None:
        """Join the window *own* if another process has begun it; None: go ahead."""
        word = read_word(self.program.folder) if self._is_shared else None
        if word is None or word.is_ending:
            return None
        if not is_alive(word.pid):  # nobody else ends it
            self._settle(_ENDED_S)
            leave_word(self.program.folder, None)
            return None
        if own is None or word.window != own.window or word.pid == own.pid:
            raise CaptureError(
                f"session {self.name} is collecting already, {word.window} for {word.who}: a "
                "session has one window at a time; start each process by its own launcher"
            )
        return word if join(self.program.folder, word, folder) else None

    def _let_nobody_join(self) -> None:
        word = read_word(self.program.folder) if self._is_shared else None
        if word is not None:
            leave_word(self.program.folder, attrs.evolve(word, is_ending=True))

    def _ended(self, folder: Path, found: Found, ended_ns: int) -> Found:
        """Give the report to who has joined, and say that no window is open."""
        give(folder, {"file": found.file, "why": found.why, "ended_ns": ended_ns})
        leave_word(self.program.folder, None)
        return found
