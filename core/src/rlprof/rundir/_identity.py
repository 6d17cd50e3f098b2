"""Finds the run folder of a process: all processes of a run agree, nothing is overwritten.

The id comes from `RLPROF_RUN_ID`, else from the launcher, else the leader (rank 0) makes one up
and the others find it by what their launcher gave all of them; a random id of torchrun gets a name
with a date. A process joins the youngest attempt of a run if its owner lives (another role of the
same run), and begins `attempt_<n>` if it does not (a resumed run). `RLPROF_RUN` names a folder
outright; the launcher of further processes sets it.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError
from rlprof.rundir._files import NO_LINKS, read_regular
from rlprof.rundir._lines import as_json, known
from rlprof.rundir._process import Here, born_ns, is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.types import Target

_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An id that a launcher made up."""

_Place = tuple[int, str, int, int | None, int | None, Path]

_joined: set[_Place] = set()
"""The folders this process wrote to, by the parts of a session's name: a second session never
writes where a first one of the same name has written."""


@attrs.frozen
class RunFolder:
    """The run folder a process writes to."""

    path: Path
    run_id: str
    attempt: int
    is_new: bool = attrs.field(default=False, eq=False)
    """Whether this process made it: it leads the run."""
    url: str = ""
    """Where a copy of it goes, if `run_dir` is a URL."""


@attrs.frozen
class _Launch:
    """A value that the launcher gave to every process of a run, and to no other process."""

    run_id: str | None
    key: str
    restart: str
    is_chosen: bool = True
    """Whether a user chose the id, not a launcher."""


@attrs.frozen
class _Owner:
    """The process that made a run folder, from its `run.json`."""

    run_id: str
    attempt: int
    key: str
    restart: str
    role: str
    rank: int
    opened_ns: int
    process: Here


def join(
    run_dir: Path,
    target: Target,
    header: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    wait_s: float = 60,
    look: Callable[[str | None], object] = lambda _: None,
) -> RunFolder:
    """Find or make the run folder of this process; *header* becomes `run.json` if it makes it.

    *look* is called before each look into *run_dir*, with the id from the launcher if there is one:
    to bring what other hosts have written.
    """
    env = os.environ if env is None else env
    named = env.get("RLPROF_RUN")
    try:
        if named:
            found = _join_named(Path(named).absolute(), target, header)
        else:
            search = _Search(run_dir, target, _launch(env), wait_s, look)
            look(search.launch.run_id)
            found = search.follow() if target.rank else search.lead(header)
    except OSError as exc:
        where, what = (named, "RLPROF_RUN") if named else (run_dir, "run_dir")
        words = exc.strerror or exc
        raise RunError(f"{where}: cannot be made: {words}; name another {what}") from exc
    _joined.add(_place(target, found.path))
    return found


def _launch(env: Mapping[str, str]) -> _Launch:
    chosen, elastic = env.get("RLPROF_RUN_ID"), env.get("TORCHELASTIC_RUN_ID")
    run_id = chosen or elastic
    if run_id in (None, "", "none"):  # torchrun says "none" when nobody named the run
        job, step = env.get("SLURM_JOB_ID"), env.get("SLURM_STEP_ID", "0")
        run_id = f"slurm-{job}-{step}" if job else None
    elif not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", run_id):
        raise RunError(
            f"run id: {run_id!r} cannot name a folder; use letters, digits, '.', '_', '-'"
        )
    where, port, size = (env.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"))
    if not where:  # mpirun's name for the job, else the parent that started all ranks here
        where = env.get("PMIX_NAMESPACE") or f"{socket.gethostname()}:{os.getppid()}"
    elif where in ("localhost", "127.0.0.1", "::1"):  # every host has one
        where = socket.gethostname()
    restarts = [env.get(f"{who}_RESTART_COUNT") or "0" for who in ("SLURM", "TORCHELASTIC")]
    key = run_id or f"{where}:{port}:{size}"
    return _Launch(run_id, key, ".".join(restarts), is_chosen=bool(chosen))


def _join_named(path: Path, target: Target, header: Mapping[str, Any]) -> RunFolder:
    """Join the folder that the launcher named, even if no process has opened it yet."""
    attempt = _attempt(path)
    root = path if attempt == 1 else path.parent
    while _place(target, path) in _joined:
        attempt += 1
        path = root / f"attempt_{attempt}"
    found = RunFolder(path, root.name, attempt)
    is_new = _create(found, _Launch(root.name, root.name, "0.0"), target, header)
    return attrs.evolve(found, is_new=is_new)


@attrs.define
class _Search:
    """One process' search for its run folder."""

    run_dir: Path
    target: Target
    launch: _Launch
    wait_s: float
    look: Callable[[str | None], object]
    _began: float = attrs.field(init=False, factory=time.monotonic)
    _pause_s: float = attrs.field(init=False, default=0.05)
    _sizes: dict[Path, int] = attrs.field(init=False, factory=dict)
    """How much was written to a run when it was first looked at."""

    def lead(self, header: Mapping[str, Any]) -> RunFolder:
        """Make the run, or join its youngest attempt if another role's leader has made it."""
        run_id = self._name() or time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)
        root = self.run_dir / run_id
        attempt = 1
        while True:
            attempt = max([attempt, *map(_attempt, root.glob("attempt_*"))])
            path = root if attempt == 1 else root / f"attempt_{attempt}"
            found = RunFolder(path, run_id, attempt)
            if _create(found, self.launch, self.target, header):
                return attrs.evolve(found, is_new=True)
            owner = _read_owner(path)
            lives = owner is not None and self._lives(path, owner)
            if lives:
                return found
            if lives is False or not self._waited():
                attempt += 1

    def follow(self) -> RunFolder:
        """Wait for the leader's run, the youngest live one of this launch."""
        while not (found := self._living()):
            if not self._waited():
                raise RunError(
                    f"{self.run_dir}: rank 0 has opened no run that {self.target} could join "
                    f"within {self.wait_s:g} s; open the session on rank 0 too, share the folder "
                    "between hosts, or set RLPROF_RUN_ID"
                )
        owner, path = max(found, key=lambda one: (one[0].attempt, one[0].opened_ns))
        return RunFolder(path, owner.run_id, owner.attempt)

    def _living(self) -> list[tuple[_Owner, Path]]:
        """Find the runs of this launch whose owner lives."""
        name = self._name()
        roots = [self.run_dir / name] if name else self.run_dir.glob("*")
        paths = [path for root in roots for path in (root, *root.glob("attempt_*"))]
        owners = [(owner, path) for path in paths if (owner := _read_owner(path)) is not None]
        return [
            (owner, path)
            for owner, path in owners
            if owner.key == self.launch.key and self._lives(path, owner)
        ]

    def _name(self) -> str | None:
        """Return the name of the run, as far as the launcher gives one."""
        given = self.launch.run_id
        if given and not self.launch.is_chosen and _RANDOM.fullmatch(given):
            from rlprof.rundir._names import agreed_name

            return agreed_name(self.run_dir, given, leads=self.target.rank == 0)
        return given

    def _lives(self, path: Path, owner: _Owner) -> bool | None:
        """Return whether this process may join the run at *path*; None while that is unknown.

        A run opened since this process began belongs to the same launch, even if its owner has
        ended since. On another host no process can be seen to live, so an older run may have just
        crashed, and must be seen to grow.
        """
        is_another_life = (owner.role, owner.rank) == (self.target.role, self.target.rank)
        was_here = _place(self.target, path) in _joined
        if is_another_life or was_here or owner.restart != self.launch.restart:
            return False
        if owner.opened_ns > born_ns():
            return True
        alive = is_alive(owner.process)
        if alive is None:
            size = sum(file.stat().st_size for file in path.glob("manifest/*"))
            return True if size > self._sizes.setdefault(path, size) else None
        return alive

    def _waited(self) -> bool:
        if time.monotonic() >= self._began + self.wait_s:
            return False
        time.sleep(self._pause_s)
        self.look(self.launch.run_id)
        self._pause_s = min(1.0, 1.2 * self._pause_s)
        return True


def _place(target: Target, path: Path) -> _Place:
    return os.getpid(), target.role, target.rank, target.replica, target.worker, path


def _attempt(path: Path) -> int:
    """Read the attempt from the name of a folder; other names mean the first."""
    match = re.fullmatch(r"attempt_(\d{1,9})", path.name)
    return int(match[1]) if match else 1


def _read_owner(path: Path) -> _Owner | None:
    import json

    try:
        owner = json.loads(read_regular(path / "run.json"))["owner"]
        return known(_Owner, owner | {"process": known(Here, owner["process"])})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _create(folder: RunFolder, launch: _Launch, target: Target, header: Mapping[str, Any]) -> bool:
    """Write `run.json` if there is none; whole or not at all, and only one process wins."""
    file = folder.path / "run.json"
    if file.exists():
        return False
    owner = _Owner(
        folder.run_id, folder.attempt, launch.key, launch.restart, target.role, target.rank,
        time.time_ns(), Here.now(),
    )  # fmt: skip
    text = as_json({"run_id": folder.run_id, "owner": attrs.asdict(owner), **header}, indent=2)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=file.parent, prefix=".run-", encoding="ascii"
    ) as draft:
        draft.write(text)
        draft.flush()
        os.fchmod(draft.fileno(), 0o644)
        try:
            os.link(draft.name, file)
        except FileExistsError:
            return False
        except OSError as exc:
            if exc.errno not in NO_LINKS:
                raise
            try:  # a file system without hard links: one winner still, if less atomic
                with file.open("x", encoding="ascii") as alone:
                    alone.write(text)
            except FileExistsError:
                return False
    return True
