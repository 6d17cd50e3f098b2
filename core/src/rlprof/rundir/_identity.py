"""Which run folder a process belongs to: all processes of a run agree, nothing is overwritten.

The id comes from `RLPROF_RUN_ID`, else from the launcher, else the leader (rank 0) makes one up
and the others find it by what their launcher told all of them. A run folder that exists already
is joined if its owner lives (another role of the same run) and continued as `attempt_<n>` if it
does not (a resumed run). `RLPROF_RUN` names a folder outright; who launches processes sets it.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError
from rlprof.rundir._process import Here, is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlprof.types import Target

_HEARTBEAT_S = 120
"""A process of another host is taken for alive if its run was written to this recently; manifests
get a clock line every ten seconds."""


@attrs.frozen
class RunFolder:
    """The run folder a process writes to."""

    path: Path
    run_id: str
    attempt: int


@attrs.frozen
class _Launch:
    """What the launcher told every process of a run, and no process of another."""

    run_id: str | None
    key: str
    restart: str


def _launch(env: Mapping[str, str]) -> _Launch:
    restart = env.get("TORCHELASTIC_RESTART_COUNT") or env.get("SLURM_RESTART_COUNT") or "0"
    elastic = env.get("TORCHELASTIC_RUN_ID", "none")
    run_id = env.get("RLPROF_RUN_ID")
    if not run_id and elastic != "none":  # torchrun says "none" when nobody named the run
        run_id = elastic
    if not run_id and "SLURM_JOB_ID" in env:
        run_id = "slurm-" + env["SLURM_JOB_ID"] + "-" + env.get("SLURM_STEP_ID", "0")
    meeting = [env.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")]
    return _Launch(run_id, run_id or ":".join(meeting), restart)


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
    if "RLPROF_RUN" in env:
        return _join_named(Path(env["RLPROF_RUN"]), target, header)
    launch = _launch(env)
    if launch.run_id and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", launch.run_id):
        raise RunError(
            f"run id: {launch.run_id!r} cannot name a folder; use letters, digits, '.', '_', '-'"
        )
    if target.rank == 0:
        return _lead(run_dir, launch, target, header)
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        found = _find(run_dir, launch)
        if found is not None:
            return found
        sleep(0.05)
    raise RunError(
        f"{run_dir}: rank 0 has opened no run that {target} could join within {wait_s:g} s; "
        "open the session on rank 0 too, share the folder between hosts, or set RLPROF_RUN_ID"
    )


def _join_named(path: Path, target: Target, header: Mapping[str, Any]) -> RunFolder:
    """Join the folder the launcher named, also if nobody has opened it yet."""
    attempt = re.fullmatch(r"attempt_(\d+)", path.name)
    run_id = path.parent.name if attempt else path.name
    launch = _Launch(run_id, run_id, "0")
    _create(path, run_id, launch, target, header)
    return RunFolder(path, run_id, int(attempt[1]) if attempt else 1)


def _lead(run_dir: Path, launch: _Launch, target: Target, header: Mapping[str, Any]) -> RunFolder:
    run_id = launch.run_id or time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)
    for attempt, path in _attempts(run_dir / run_id):
        while not _create(path, run_id, launch, target, header):
            owner = _read_header(path)
            if owner is None:
                continue  # it vanished between the two calls
            same_place = (owner["role"], owner["rank"]) == (target.role, target.rank)
            if same_place or not _is_live(path, owner, launch):
                break  # another life of this very process: go on to the next attempt
            return RunFolder(path, run_id, attempt)
        else:
            return RunFolder(path, run_id, attempt)
    raise AssertionError  # _attempts never ends


def _attempts(root: Path) -> Iterator[tuple[int, Path]]:
    yield 1, root
    attempt = 2
    while True:
        yield attempt, root / f"attempt_{attempt}"
        attempt += 1


def _find(run_dir: Path, launch: _Launch) -> RunFolder | None:
    """Find the youngest live run of this launch."""
    roots = [run_dir / launch.run_id] if launch.run_id else list(run_dir.glob("*"))
    found = []
    for path in [folder for root in roots for folder in (root, *root.glob("attempt_*"))]:
        owner = _read_header(path)
        if owner is not None and owner["key"] == launch.key and _is_live(path, owner, launch):
            found.append((owner["opened_ns"], owner["run_id"], owner["attempt"], path))
    if not found:
        return None
    _, run_id, attempt, path = max(found)
    return RunFolder(path, run_id, attempt)


def _is_live(path: Path, owner: Mapping[str, Any], launch: _Launch) -> bool:
    if owner["restart"] != launch.restart:
        return False
    alive = is_alive(Here(**owner["process"]))
    if alive is not None:
        return alive
    files = [path / "run.json", *path.glob("manifest/*")]
    youngest = max((file.stat().st_mtime for file in files if file.exists()), default=0)
    return time.time() - youngest < _HEARTBEAT_S


def _read_header(path: Path) -> dict[str, Any] | None:
    import json

    try:
        owner = json.loads((path / "run.json").read_bytes())["owner"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if isinstance(owner, dict) else None


def _create(
    path: Path, run_id: str, launch: _Launch, target: Target, header: Mapping[str, Any]
) -> bool:
    """Write `run.json` if there is none; whole or not at all, and only one process wins."""
    import json

    attempt = re.fullmatch(r"attempt_(\d+)", path.name)
    owner = {
        "run_id": run_id,
        "attempt": int(attempt[1]) if attempt else 1,
        "key": launch.key,
        "restart": launch.restart,
        "role": target.role,
        "rank": target.rank,
        "opened_ns": time.time_ns(),
        "process": attrs.asdict(Here.now()),
    }
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path, prefix=".run-", encoding="utf-8") as draft:
        json.dump({"run_id": run_id, "owner": owner, **header}, draft, indent=2, default=str)
        draft.flush()
        os.fchmod(draft.fileno(), 0o644)
        try:
            os.link(draft.name, path / "run.json")
        except FileExistsError:
            return False
    return True
