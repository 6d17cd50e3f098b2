"""A run folder that is made line by line in memory and written at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

EPOCH_NS = 1_795_440_000_000_000_000
"""The wall clock at monotonic 0."""
_OF_A_HOST = ("mono", "monotonic_ns", "t0", "t1")


class Folder:
    """The lines of every process of a run; times are seconds of a clock that all share.

    What is written are those of each host, whose monotonic clock may be behind.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self._config = config or {"tool": "none", "roles": {"actor": {}, "rollout": {}}}
        self.manifest: dict[str, list[dict[str, Any]]] = {}
        self.spans: dict[str, list[dict[str, Any]]] = {}
        self._behind: dict[str, int] = {}

    def process(
        self,
        role: str,
        rank: int,
        *,
        replica: int | None = None,
        world: int = 1,
        host: str = "node",
        behind_ns: int = 0,
    ) -> str:
        """Begin a process; return the stem of its files."""
        pid = 100 + len(self.manifest)
        stem = f"{role}-{rank}-{host}-{pid}"
        target = {"role": role, "rank": rank, "world_size": world, "replica": replica}
        here = _here(pid, host)
        self.manifest[stem] = [
            {"event": "process", "mono": 1, "target": target, "here": here, "versions": {}}
        ]
        self.spans[stem], self._behind[stem] = [], behind_ns
        return stem

    def span(
        self,
        stem: str,
        kind: str,
        name: str,
        times: tuple[float, float],
        step: int | None,
        *,
        parent: int | None = None,
        **attributes: Any,
    ) -> int:
        """Add a span; return its id."""
        start, end = times
        line = {"kind": kind, "name": name, "t0": round(start * 1e9), "t1": round(end * 1e9)}
        line |= {"step": step, "thread": 1, "id": len(self.spans[stem]) + 1}
        line |= {} if parent is None else {"parent": parent}
        line |= {"attributes": attributes} if attributes else {}
        self.spans[stem].append(line)
        return len(self.spans[stem])

    def event(self, stem: str, name: str, at: float, **fields: Any) -> None:
        """Add a line to the manifest of a process."""
        self.manifest[stem].append({"event": name, "mono": round(at * 1e9), **fields})

    def write(self, path: Path, *, until: float, ended: bool = True) -> Path:
        """Write it all to *path*, with clocks that end *until* then."""
        for name in ("manifest", "spans"):
            (path / name).mkdir(parents=True)
        owner = {"run_id": path.name, "attempt": 1, "opened_ns": EPOCH_NS, "process": _here(1)}
        header = {"run_id": path.name, "owner": owner, "rlprof": "0.1.0", "config": self._config}
        (path / "run.json").write_text(json.dumps(header))
        for stem, lines in self.manifest.items():
            first, last = lines[0], round(until * 1e9)
            told = [first, _clock(0), *lines[1:], _clock(last)]
            told += [{"event": "ended", "mono": last}] if ended else []
            _write(path / "manifest" / f"{stem}.jsonl", told, self._behind[stem])
            if self.spans[stem]:
                _write(path / "spans" / f"{stem}.jsonl", self.spans[stem], self._behind[stem])
        return path


def _here(pid: int, host: str = "node") -> dict[str, Any]:
    return {"host": host, "boot_id": host, "pid_namespace": "p", "pid": pid, "started": "1"}


def _clock(at: int) -> dict[str, Any]:
    realtime = EPOCH_NS + at
    return {
        "event": "clock", "mono": at, "realtime_ns": realtime, "monotonic_ns": at, "bound_ns": 100
    }  # fmt: skip


def _write(file: Path, lines: list[dict[str, Any]], behind_ns: int) -> None:
    for line in lines:
        line |= {key: line[key] - behind_ns for key in _OF_A_HOST if key in line}
    file.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))
