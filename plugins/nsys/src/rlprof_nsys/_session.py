"""One nsys session, seen from the program: opens and closes windows by the session's name."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import attrs

from rlprof import CaptureError
from rlprof_nsys import _shared
from rlprof_nsys._processes import is_alive
from rlprof_nsys._report import REPORT, Found, await_report
from rlprof_nsys._shared import BEGINNING, ENDING, IS_OPEN, Word

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlprof_nsys._program import Outcome, Program

_LEAST_S = 1.0
_BRIEF_S = 0.1
_ENDED_S = 5.0
_SEEN_S = 10.0
_POLL_S = 0.05
_UNSEEN_S = 0.1
"""`nsys start` may return before nsys sees ranges; the first is that of the window's phase."""
_IDLE = "not applicable in this state"
_BUSY = "not allowed in this state"
_DEAD = ("Failed to find session", "Connection refused", "Connection to Agent lost")


@attrs.define
class Session:
    """The session that this process belongs to."""

    program: Program
    name: str
    """Its name, or its id."""
    is_in_doubt: bool = False
    """Whether nsys did not answer a call, so it may be collecting."""
    _own: Word | None = None
    """The word that this process left for the others about its window."""

    def start(
        self, folder: Path, options: Sequence[str], word: Word | None, *, within_s: float
    ) -> Word | None:
        """Start to collect into *folder*; raise CaptureError if nsys does not.

        Leave *word*, if given, for the processes that share the session. If one of them opened the
        same window before, join that window and return its word.
        """
        end = time.monotonic() + within_s
        self._see_that_it_is_there(within_s)
        other = self._claimed(word, folder, end)
        if other is not None:
            return other
        try:
            if self.is_in_doubt:
                self._settle(within_s)
            self._begin(folder, options, within_s, max(_BRIEF_S, end - time.monotonic()))
        except BaseException:
            self._take_own_away()
            raise
        self._tell(IS_OPEN)
        return None

    def _begin(self, folder: Path, options: Sequence[str], within_s: float, left_s: float) -> None:
        output = f"--output={str(folder / 'report').replace('%', '%%')}"
        args = [f"--session={self.name}", *options, "--force-overwrite=true", output]
        outcome = self.program.call("start", *args, timeout_s=left_s)
        if outcome.code != 0:
            self.is_in_doubt = outcome.code is None
            if _BUSY in outcome.text:  # it is collecting, or was just shut down
                self._see_that_it_is_there(_LEAST_S)
            raise CaptureError(self._refusal("start", outcome, within_s))
        time.sleep(_UNSEEN_S)

    def stop(self, folder: Path, *, within_s: float) -> Found:
        """Close the window, and return the report once it is whole."""
        end, ended_ns = time.monotonic() + within_s, time.time_ns()
        self._tell(ENDING)
        outcome = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
        self.is_in_doubt = outcome.code is None
        left = max(_LEAST_S, end - time.monotonic())
        if outcome.code != 0:
            left = min(left, _ENDED_S if _IDLE in outcome.text else _LEAST_S)
        found = await_report(folder, is_done=outcome.code == 0, within_s=left)
        if outcome.code != 0 and _IDLE in outcome.text:
            found = attrs.evolve(found, why="another process has ended this window")
        elif not found.file and outcome.code != 0:
            found = Found(why=self._refusal("stop", outcome, within_s))
        return self._ended(folder, found, ended_ns)

    def await_range(self, folder: Path, *, within_s: float) -> Found:
        """Return the report of a range that ended; if no range began, close the window."""
        end, ended_ns = time.monotonic() + within_s, time.time_ns()
        self._tell(ENDING)
        seen_by = time.monotonic() + min(within_s, _SEEN_S)
        while not (folder / REPORT).exists() and time.monotonic() < seen_by:
            time.sleep(_POLL_S)
        if (folder / REPORT).exists():
            left = max(_LEAST_S, end - time.monotonic())
            found = await_report(folder, is_done=False, within_s=left)
        else:
            outcome = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
            self.is_in_doubt = outcome.code is None
            found = Found(why="nsys did not see the range of the window")
        return self._ended(folder, found, ended_ns)

    def _settle(self, within_s: float) -> None:
        """Close the window that an unanswered call may have opened."""
        outcome = self.program.call("stop", f"--session={self.name}", timeout_s=within_s)
        self.is_in_doubt = outcome.code is None
        if self.is_in_doubt:
            raise CaptureError(self._refusal("stop", outcome, within_s))

    def _see_that_it_is_there(self, within_s: float) -> None:
        """Raise CaptureError if the session is gone: `nsys start` would make a new, empty one."""
        known = self.program.sessions(timeout_s=within_s)
        if known is not None and self.name not in known:
            raise CaptureError(self._gone)

    @property
    def _gone(self) -> str:
        return (
            f"nsys has no session {self.name} any more: it was shut down, or its agent died; "
            "the program continues without it"
        )

    def _refusal(self, verb: str, outcome: Outcome, within_s: float) -> str:
        if outcome.code is None:
            return f"nsys {verb} did not return within {within_s:g} s and was killed"
        if any(sign in outcome.text for sign in _DEAD):
            return self._gone
        if _BUSY in outcome.text:
            return self._taken(None)
        return f"nsys {verb}: {outcome.sentence}"

    def _claimed(self, own: Word | None, folder: Path, end: float) -> Word | None:
        """Join the window *own* if another process opened it; None: open it here."""
        while self.program.folder:  # else no launcher made the session
            word = _shared.read_word(self.program.folder)
            if word is None:
                if own is None:
                    return None
                own = attrs.evolve(own, state=BEGINNING)
                if _shared.claim(self.program.folder, own):
                    self._own = own
                    return None
            elif not is_alive(word.pid):
                self._settle(max(_ENDED_S, end - time.monotonic()))
                _shared.take_away(self.program.folder, word)
                continue
            elif word.state == IS_OPEN:
                self.is_in_doubt = False  # nsys collects for the other process
                if own is None or word.window != own.window or word.pid == own.pid:
                    raise CaptureError(self._taken(word))
                if _shared.join(self.program.folder, word, folder):
                    return word
            if time.monotonic() >= end:
                raise CaptureError(self._taken(word))
            time.sleep(_POLL_S)
        return None

    def _taken(self, word: Word | None) -> str:
        what = f", {word.window} for {word.who}" if word is not None else ""
        return (
            f"session {self.name} is collecting already{what}: a session has one window at a time, "
            "and none under `nsys profile`; start each process with a separate launcher"
        )

    def _tell(self, state: str) -> None:
        """Publish the state of this process's window to the others."""
        if self._own is not None:
            self._own = attrs.evolve(self._own, state=state)
            _shared.leave_word(self.program.folder, self._own)

    def _take_own_away(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            _shared.take_away(self.program.folder, own)

    def _ended(self, folder: Path, found: Found, ended_ns: int) -> Found:
        """Publish that no window is open, then give the report to all that joined; may be slow."""
        self._take_own_away()
        _shared.give(folder, {"file": found.file, "why": found.why, "ended_ns": ended_ns})
        return found
