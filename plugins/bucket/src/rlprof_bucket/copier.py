"""The helper process: brings the runs of other hosts, and copies the files of ours.

It is called with URL LOCAL PID, reads orders as lines of JSON, and ends when its input or the
process PID does. All sessions of a host copy the same folder, one at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import RunError, raised
from rlprof_bucket.stored import Stored, why

if TYPE_CHECKING:
    from collections.abc import Iterator

PERIOD_S = float(os.environ.get("BUCKET_PERIOD_S", "15"))
"""Between two copies."""
_TRIES = 3
"""How often the last copy is tried."""
_MOST_FAILURES = 3
"""After so many files that fail, a turn ends: the bucket does not answer, and closing waits."""
_ORDER = {"manifest": 2, "spans": 1, "counters": 1}
"""Folders that are copied after all others: a manifest never names a file that is not there."""


def main(argv: list[str]) -> int:
    """Follow orders until the input ends, then make the last copy."""
    url, local, parent, last_s = argv
    os.nice(10)
    answers = os.dup(1)
    os.dup2(2, 1)  # a file system may print
    threading.Thread(target=_end_after, args=[int(parent), int(last_s)], daemon=True).start()
    copies: _Copies | None = None
    has_ended = False
    try:
        stored = Stored(url)
    except RunError as exc:
        _answer(answers, error=why(exc, url))
        return 1
    for order in _orders(int(parent)):
        if order is None:
            if copies is not None and (error := copies.copy()) is not None:
                _answer(answers, error=error)
        elif "ended" in order:
            has_ended = True
        else:
            if "join" in order:
                copies = _Copies(Path(local), order["join"], Stored(f"{url}/{order['join']}"))
            _answer(answers, error=_carried_out(stored, Path(local), order))
    if copies is not None:
        left, error = copies.finish()
        _answer(answers, left=left, error=error)
        if has_ended and not left:
            copies.leave()
    return 0


def _answer(answers: int, **answer: Any) -> None:
    with suppress(OSError):  # the process was killed
        os.write(answers, json.dumps(answer).encode() + b"\n")


def _end_after(parent: int, last_s: int) -> None:
    """End this process *last_s* after its input or *parent*, even if the bucket hangs."""
    orders = select.poll()
    orders.register(0, 0)  # returns once nobody can write
    while os.getppid() == parent and not orders.poll(1000):
        pass
    signal.alarm(last_s)


def _orders(parent: int) -> Iterator[dict[str, Any] | None]:
    """Return the orders as they come, and None whenever it is time to copy."""
    rest, due = b"", time.monotonic() + PERIOD_S
    while True:
        if select.select([0], [], [], max(0.0, min(1.0, due - time.monotonic())))[0]:
            block = os.read(0, 65536)
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            yield from map(json.loads, lines)
        if os.getppid() != parent:  # killed, and a forked child keeps our input open
            return
        if time.monotonic() >= due:
            yield None
            due = time.monotonic() + PERIOD_S


def _carried_out(stored: Stored, local: Path, order: dict[str, Any]) -> str:
    """Carry out *order*; return what went wrong."""
    try:
        if "look" in order:
            bring(stored, local, order["look"])
        elif order["is_new"]:
            publish(stored, local, order["join"])
        elif not (header := local / order["join"] / "run.json").exists():
            stored.get(f"{order['join']}/run.json", header)  # another session has just removed it
    except (OSError, RunError) as exc:
        return why(exc, stored.url)
    return ""


def bring(stored: Stored, local: Path, launch_id: str | None) -> None:
    """Bring the `run.json` of runs that other hosts have opened.

    Without the id of a launch, only runs of the last day can be of this launch.
    """
    if launch_id:
        name = stored.read(f".launches/{launch_id}")
        link = local / ".launches" / launch_id
        if name is not None and not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            with suppress(FileExistsError):
                link.symlink_to(name.decode())
        roots = [launch_id if name is None else name.decode()]
    else:
        yesterday = time.strftime("%Y%m%d", time.localtime(time.time() - 86400))
        roots = [one for one in stored.names() if one >= yesterday]
    for root in roots:
        attempts = [one for one in stored.names(root) if one.startswith("attempt_")]
        for folder in (root, *(f"{root}/{one}" for one in attempts)):
            file = local / folder / "run.json"
            if file.exists():
                _show_growth(stored, folder, file.parent / "manifest")
            elif stored.read(f"{folder}/run.json") is not None:
                stored.get(f"{folder}/run.json", file)


def _show_growth(stored: Stored, folder: str, manifest: Path) -> None:
    """Make a file as large as the manifests there: core takes a run for live if these grow."""
    manifest.mkdir(exist_ok=True)
    with (manifest / ".elsewhere").open("ab") as sparse:
        sparse.truncate(stored.size(f"{folder}/manifest"))


def publish(stored: Stored, local: Path, place: str) -> None:
    """Copy the `run.json` of a new run, and the name that its launch has got."""
    for link in (local / ".launches").glob("*"):
        if link.readlink().name == Path(place).parts[0]:
            stored.write(f".launches/{link.name}", link.readlink().name.encode())
    stored.put(local / place / "run.json", f"{place}/run.json")


class _Copies:
    """The copies of one run, for one session; from now on, no other removes the local files."""

    def __init__(self, local: Path, place: str, stored: Stored) -> None:
        self._local = local
        self._run = local / place
        self._stored = stored
        self._record = self._run / ".copied.json"
        self._user = self._run / ".users" / str(os.getpid())
        self._error = ""
        with _alone(local / ".users.lock"):
            self._user.parent.mkdir(parents=True, exist_ok=True)
            self._user.touch()

    def copy(self) -> str | None:
        """Copy what is new; return what went wrong, or "" for nothing, if that has changed."""
        _, error = self._copied()
        before, self._error = self._error, error
        return None if error == before else error

    def finish(self) -> tuple[int, str]:
        """Make the last copy; return how many files are left, and why."""
        for number in range(_TRIES):
            left, error = self._copied()
            if not left:
                break
            if number < _TRIES - 1:
                time.sleep(2**number)
        return left, error

    def leave(self) -> None:
        """Remove the local files if all other sessions of this host have left them.

        A process that was killed does not leave: `rlprof salvage` needs its files.
        """
        with _alone(self._local / ".users.lock"):
            self._user.unlink()
            if any(self._run.glob(".users/*")) or any(self._run.glob("attempt_*/.users/*")):
                return
            removed = tempfile.mkdtemp(prefix=".removed-", dir=self._local)
            self._run.rename(f"{removed}/run")
        shutil.rmtree(removed, ignore_errors=True)

    def _copied(self) -> tuple[int, str]:
        """Copy what is new; return how many files are left, and why."""
        error, failures = "", 0
        try:
            with _alone(self._run / ".copying.lock"):
                done = self._recorded()
                new = list(changed(self._run, done))
                left = len(new)
                for name, stamp in new:
                    try:
                        self._stored.put(self._run / name, name)
                    except FileNotFoundError:  # removed since
                        left -= 1
                        continue
                    except (OSError, RunError) as exc:  # the next file may succeed
                        error, failures = why(exc, self._stored.url), failures + 1
                        if failures == _MOST_FAILURES:
                            break
                        continue
                    done[name] = stamp
                    left -= 1
                if new:
                    self._record.write_text(json.dumps(done))
        except OSError as exc:  # the local disk
            return 1, raised(exc)
        return left, error

    def _recorded(self) -> dict[str, list[int]]:
        try:
            done: dict[str, list[int]] = json.loads(self._record.read_text())
        except (OSError, ValueError):
            return {}
        return done


def changed(run: Path, done: dict[str, list[int]]) -> Iterator[tuple[str, list[int]]]:
    """List the files of *run* that differ from what is *done*, with size and time."""
    found = []
    for path in run.rglob("*"):
        parts = path.relative_to(run).parts
        if any(part.startswith(".") for part in parts) or parts[0].startswith("attempt_"):
            continue
        if parts[0] == "exports" or path.is_symlink() or not path.is_file():
            continue
        status = path.stat()
        stamp = [status.st_size, status.st_mtime_ns]
        name = "/".join(parts)
        if done.get(name) != stamp:
            found.append((_ORDER.get(parts[0], 0), name, stamp))
    for _, name, stamp in sorted(found):
        yield name, stamp


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
