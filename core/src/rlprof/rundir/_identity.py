"""Which run folder a process belongs to: all processes of a run agree, nothing is overwritten.

The id comes from `RLPROF_RUN_ID`, else from the launcher, else the leader (rank 0) makes one up
and the others find it by what their launcher told all of them; a random id of torchrun gets a name
with a date. The youngest attempt of a run is
joined if its owner lives (another role of the same run) and followed by `attempt_<n>` if it does
not (a resumed run). `RLPROF_RUN` names a folder outright; who launches processes sets it.
"""

from __future__ import annotations

import errno
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
from rlprof.rundir._fields import known
from rlprof.rundir._journal import as_json, last_event
from rlprof.rundir._names import agreed_name
from rlprof.rundir._process import Here, born_ns, is_alive
from rlprof.rundir._regular import read_regular
from rlprof.types import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof.types import Target

_HEARTBEAT_S = 120
"""A process of another host is taken for dead if its run was not written to for so long; manifests
get a clock line every ten seconds."""

_joined: set[tuple[int, str, int, Path]] = set()
"""Where this process has been, by pid, role and rank: a second session writes nowhere a first one
of the same name has written."""


@attrs.frozen
class RunFolder:
    """The run folder a process writes to."""

    path: Path
    run_id: str
    attempt: int
    is_new: bool = attrs.field(default=False, eq=False)
    """Whether this process made it: it leads the run."""


@attrs.frozen
class _Launch:
    """What the launcher told every process of a run, and no process of another."""

    run_id: str | None
    key: str
    restart: str
    is_chosen: bool = True
    """Whether a user has chosen the id, not a launcher."""


@attrs.frozen
class _Owner:
    """Who made a run folder, as its `run.json` says."""

    run_id: str
    attempt: int
    key: str
    restart: str
    role: str
    rank: int
    opened_ns: int
    process: Here

    def has_ended(self, path: Path) -> bool:
        """Whether it has closed its session in the run at *path*."""
        name = f"{safe_name(self.role)}-{self.rank}-*-{self.process.pid}.jsonl"
        return any(last_event(file) == "ended" for file in path.glob(f"manifest/{name}"))


def _launch(env: Mapping[str, str]) -> _Launch:
    restarts = [env.get(f"{who}_RESTART_COUNT") or "0" for who in ("SLURM", "TORCHELASTIC")]
    elastic = env.get("TORCHELASTIC_RUN_ID", "none")
    run_id = env.get("RLPROF_RUN_ID")
    if not run_id and elastic != "none":  # torchrun says "none" when nobody named the run
        run_id = elastic
    if not run_id and "SLURM_JOB_ID" in env:
        run_id = "slurm-" + env["SLURM_JOB_ID"] + "-" + env.get("SLURM_STEP_ID", "0")
    meeting = [env.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")]
    if not meeting[0]:  # mpirun's name for the job, else the parent that started all ranks here
        meeting[0] = env.get("PMIX_NAMESPACE") or f"{socket.gethostname()}:{os.getppid()}"
    elif meeting[0] in ("localhost", "127.0.0.1", "::1"):  # every host has one
        meeting[0] = socket.gethostname()
    is_chosen = bool(env.get("RLPROF_RUN_ID"))
    return _Launch(run_id, run_id or ":".join(meeting), ".".join(restarts), is_chosen)


def join(
    run_dir: Path,
    target: Target,
    header: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    wait_s: float = 60,
    sleep: Callable[[float], None] = time.sleep,
) -> RunFolder:
    """Find or make the run folder of this process; *header* becomes `run.json` if it makes it."""
    env = os.environ if env is None else env
    named = env.get("RLPROF_RUN")
    try:
        found = _found(run_dir, named, target, header, env, wait_s=wait_s, sleep=sleep)
    except OSError as exc:
        where, what = (named, "RLPROF_RUN") if named else (run_dir, "run_dir")
        words = exc.strerror or exc
        raise RunError(f"{where}: cannot be made: {words}; name another {what}") from exc
    _joined.add(_place(target, found.path))
    return found


def _found(
    run_dir: Path,
    named: str | None,
    target: Target,
    header: Mapping[str, Any],
    env: Mapping[str, str],
    *,
    wait_s: float,
    sleep: Callable[[float], None],
) -> RunFolder:
    if named:
        return _join_named(Path(named).absolute(), target, header)
    launch = _launch(env)
    if launch.run_id and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", launch.run_id):
        raise RunError(
            f"run id: {launch.run_id!r} cannot name a folder; use letters, digits, '.', '_', '-'"
        )
    search = _Search(run_dir, target, launch, wait_s=wait_s, sleep=sleep)
    return search.follow() if target.rank else search.lead(header)


def _join_named(path: Path, target: Target, header: Mapping[str, Any]) -> RunFolder:
    """Join the folder the launcher named, also if nobody has opened it yet."""
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
    wait_s: float = attrs.field(kw_only=True)
    sleep: Callable[[float], None] = attrs.field(kw_only=True)
    _deadline: float = attrs.field(init=False)
    _pause_s: float = attrs.field(init=False, default=0.05)
    _sizes: dict[Path, int] = attrs.field(init=False, factory=dict)
    """How much was written to a run when it was first looked at."""

    def __attrs_post_init__(self) -> None:
        self._deadline = time.monotonic() + self.wait_s

    def lead(self, header: Mapping[str, Any]) -> RunFolder:
        """Make the run, or join its youngest attempt if another role's leader has made it."""
        run_id = self._name() or time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)
        root = self.run_dir / run_id
        attempt = 1
        while True:
            attempt = max([attempt, *map(_attempt, root.glob("attempt_*"))])
            path = root if attempt == 1 else root / f"attempt_{attempt}"
            found = RunFolder(path, run_id, attempt)
            if not (path / "run.json").exists():
                if _create(found, self.launch, self.target, header):
                    return attrs.evolve(found, is_new=True)
                continue  # another leader was faster
            owner = _read_owner(path)
            if owner is None or (owner.role, owner.rank) == (self.target.role, self.target.rank):
                lives: bool | None = False  # nobody's, or another life of this very process
            else:
                lives = self._lives(path, owner)
            if lives:
                return found
            if lives is False or not self._waited():
                attempt += 1

    def follow(self) -> RunFolder:
        """Wait for the leader's run, the youngest live one of this launch."""
        while True:
            found = self._find()
            if found is not None:
                return found
            if not self._waited():
                raise RunError(
                    f"{self.run_dir}: rank 0 has opened no run that {self.target} could join "
                    f"within {self.wait_s:g} s; open the session on rank 0 too, share the folder "
                    "between hosts, or set RLPROF_RUN_ID"
                )

    def _find(self) -> RunFolder | None:
        run_id = self._name()
        roots = [self.run_dir / run_id] if run_id else list(self.run_dir.glob("*"))
        found = []
        for path in [folder for root in roots for folder in (root, *root.glob("attempt_*"))]:
            owner = _read_owner(path)
            if owner is not None and owner.key == self.launch.key and self._lives(path, owner):
                found.append((owner.attempt, owner.opened_ns, owner.run_id, path))
        if not found:
            return None
        attempt, _, run_id, path = max(found)
        return RunFolder(path, run_id, attempt)

    def _name(self) -> str | None:
        """Return the name of the run as far as the launcher tells it."""
        given, is_leader = self.launch.run_id, self.target.rank == 0
        if given and not self.launch.is_chosen:
            return agreed_name(self.run_dir, given, leads=is_leader)
        return given

    def _lives(self, path: Path, owner: _Owner) -> bool | None:
        """Say whether this process may join the run at *path*; None while that cannot be said.

        What was opened since this process began was opened by the same launch: a follower joins
        it also if its leader has ended in peace, for that has just been quicker. On another host,
        where nobody can be seen to be alive, an older run may be one that has just crashed, and
        must be seen to grow.
        """
        if owner.restart != self.launch.restart or _place(self.target, path) in _joined:
            return False
        alive = is_alive(owner.process)
        if alive is not None:
            was_quicker = self.target.rank > 0 and owner.opened_ns > born_ns()
            return alive or (was_quicker and owner.has_ended(path))
        stats = [file.stat() for file in (path / "run.json", *path.glob("manifest/*"))]
        if time.time() - max(stat.st_mtime for stat in stats) > _HEARTBEAT_S:
            return False
        size = sum(stat.st_size for stat in stats)
        if owner.opened_ns > born_ns() or size > self._sizes.setdefault(path, size):
            return True
        return None

    def _waited(self) -> bool:
        if time.monotonic() >= self._deadline:
            return False
        self.sleep(self._pause_s)
        self._pause_s = min(1.0, 1.2 * self._pause_s)
        return True


def _place(target: Target, path: Path) -> tuple[int, str, int, Path]:
    return os.getpid(), target.role, target.rank, path


def _attempt(path: Path) -> int:
    """Read the attempt from a folder's name; whatever is not named like one is the first."""
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
    owner = _Owner(
        folder.run_id, folder.attempt, launch.key, launch.restart, target.role, target.rank,
        time.time_ns(), Here.now(),
    )  # fmt: skip
    text = as_json({"run_id": folder.run_id, "owner": attrs.asdict(owner), **header}, indent=2)
    path = folder.path
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path, prefix=".run-", encoding="ascii") as draft:
        draft.write(text)
        draft.flush()
        os.fchmod(draft.fileno(), 0o644)
        try:
            os.link(draft.name, path / "run.json")
        except FileExistsError:
            return False
        except OSError as exc:
            if exc.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            try:  # a file system without hard links: one winner still, if less atomic
                with (path / "run.json").open("x", encoding="ascii") as file:
                    file.write(text)
            except FileExistsError:
                return False
    return True
