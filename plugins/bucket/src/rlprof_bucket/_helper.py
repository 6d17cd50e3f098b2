"""The helper process as training sees it: orders go in and answers come out, as lines of JSON.

It ends when its input does. So it makes the last copy of a process that was killed, too.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof.errors import RunError
from rlprof.session.interpreter import command, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LAST_S = 600
"""How long the last copy may take in all."""
_waiting: dict[tuple[int, Path], Helper] = {}
"""Helpers of runs that were joined, until the listener of the session takes them."""


class Helper:
    """One helper process."""

    def __init__(self, url: str, local: Path, wait_s: float) -> None:
        self.url = url
        self._wait_s = wait_s
        self._pid = os.getpid()
        self._log = local / f".helper-{os.getpid()}.log"
        theirs, self._orders = socket.socketpair()
        self._answers, ours = os.pipe()
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command("rlprof_bucket.copier", url, str(local), str(os.getpid()), str(LAST_S)),
                env=environment(), stdin=theirs.fileno(), stdout=ours, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        os.close(ours)
        self._asking = threading.Lock()
        self._rest = b""

    def look(self, launch_id: str | None) -> None:
        """Bring the `run.json` of other hosts' runs; raise RunError if that fails."""
        self._ask({"look": launch_id})

    def join(self, place: str, *, is_new: bool) -> None:
        """Copy the files of the run at *place* from now on, every few seconds.

        If the run *is_new*, its `run.json` is copied at once, so that other hosts find it.
        """
        self._ask({"join": place, "is_new": is_new})

    def keep_for(self, run: Path) -> None:
        """Wait for the listener of the session that writes to *run*."""
        _waiting[os.getpid(), run] = self

    def heard(self) -> str | None:
        """Return what it said last of its copies: an error, or that they succeed; None: nothing."""
        error = None
        while (answer := self._answer(0)) is not None:
            error = str(answer.get("error", ""))
        return self.death() or error

    def death(self) -> str:
        """Say that it has ended, with its last words; empty if it has not."""
        if self._process.poll() is None:
            return ""
        ended = "the helper process has ended"
        with suppress(OSError):
            if words := self._log.read_text(errors="replace").strip().splitlines():
                return f"{ended}; its last words: {words[-1][:500]}"
        return ended

    def forget(self) -> None:
        """Let go of it in a forked child, which would keep it from ending."""
        if os.getpid() != self._pid:
            self._orders.close()

    def kill(self) -> None:
        """End it at once, for it has nothing to copy."""
        self._process.kill()
        self._process.wait()
        self._orders.close()
        os.close(self._answers)

    def last(self, within_s: float, waiting: Callable[[], object]) -> int | None:
        """Return how many files it could not copy; None if it has died or is not done *within_s*.

        *waiting* is called every few seconds of that.
        """
        self._send({"ended": True})
        self._orders.close()
        ends = time.monotonic() + within_s
        left = None
        while time.monotonic() < ends:
            answer = self._answer(min(5.0, max(0.0, ends - time.monotonic())))
            if answer is None and self._process.poll() is not None:
                break
            if answer is None:
                waiting()
            elif "left" in answer:
                left = int(answer["left"])
        if left == 0:
            self._log.unlink(missing_ok=True)
        os.close(self._answers)
        return left

    def _send(self, order: dict[str, Any]) -> None:
        with suppress(OSError):  # it has ended
            # else SIGPIPE ends training that does not ignore it
            self._orders.sendall(json.dumps(order).encode() + b"\n", socket.MSG_NOSIGNAL)

    def _ask(self, order: dict[str, Any]) -> None:
        with self._asking:
            self._send(order)
            answer = self._answer(self._wait_s)
        if answer is None:
            why = self.death() or f"no answer within {self._wait_s:g} s"
            raise RunError(f"{self.url}: {why}")
        if answer["error"]:
            raise RunError(f"{self.url}: {answer['error']}")

    def _answer(self, within_s: float) -> dict[str, Any] | None:
        """Return its next line, if that comes *within_s*."""
        out, ends = self._answers, time.monotonic() + within_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([out], [], [], max(0.0, ends - time.monotonic()))
            block = os.read(out, 65536) if ready else b""
            if ready and not block:  # it ends
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(1)
            if not block:
                return None
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


def taken(run: Path) -> Helper:
    """Return the helper of the session of this process that writes to *run*."""
    return _waiting.pop((os.getpid(), run))
