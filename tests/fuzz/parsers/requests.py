"""A request to a live run: asked of the tracks it means, or refused in words; no exception."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rlprof import ConfigError
from rlprof.config import load_config
from rlprof.rundir import as_line
from rlprof.types import Target
from rlprof_live import control
from rlprof_live._mailbox import Mailbox
from tests.fakes import tools
from tests.fuzz._loop import Parser

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof.schedule import Demand

CONFIG = {
    "tool": "fake",
    "steps": [2],
    "roles": {"actor": {"ranks": "all", "options": {"fake": {"level": 2}}}},
    "tools": {"fake": {"artifacts": 1}, "other": {"level": 3}},
}
TOKENS = (b'"ranks": "all"', b'"ranks": [1]', b'"mode": "continuous"', b'"tool": ["other"]',
          b'"phases": ["a"]', b'"options": {"fake": {"level": 1}}', b'"options": {"fake": null}',
          b'"at": -1', b'"next": 0', b'"role": "rollout"', b'"\\ud800"',
          b"NaN", b"\xff")  # fmt: skip


def seeds(folder: Path) -> list[bytes]:
    """Requests as `rlprof capture` leaves them."""
    asked = [
        control.Request("20261121-1", "actor", by="me@here"),
        control.Request("20261121-2", "actor", next=3, at=7, ranks=(0, 1), phases=("a",)),
        control.Request("20261121-3", "actor", mode="continuous", ranks=None,
                        tool=("fake", "other"),
                        options={"fake": {"level": 3}, "other": {"unsupported": ["a"]}}),
    ]  # fmt: skip
    alone = [control.write(folder, request).read_bytes() for request in asked]
    return [*alone, control.write(folder, *asked).read_bytes()]


class _Track:
    """One target of the process."""

    def __init__(self, rank: int) -> None:
        self.target, self.ranks, self.kinds = Target("actor", rank, 2), (rank,), ("tool",)

    def too_late(self, at: int) -> str:
        """Refuse one step, as if it was over."""
        return "step 3 is over" if at == 3 else ""

    def keys(self, _: Demand) -> list[dict[str, Any]]:
        """Say whom lines are about."""
        return [{}]


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Let the mailbox of a process with two tracks find it."""
    tools.register()
    run, tracks = folder / "run", [_Track(0), _Track(1)]
    file = run / control.FOLDER / "1.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    told: list[dict[str, Any]] = []
    said: list[str] = []
    asked: list[tuple[_Track, Demand]] = []
    session: Any = SimpleNamespace(
        run_dir=run,
        config=load_config(CONFIG),
        tracks=tracks,
        write=lambda event, **fields: told.append({"event": event, **fields}),
        log=lambda text, *_: said.append(text),
        ask=lambda served: asked.extend((track, demand) for track, demand, _ in served),
    )
    mailbox = Mailbox(session)
    file.write_bytes(data)

    mailbox.look()
    mailbox.look()

    for line in told:
        as_line(line)
    assert all(demand.count >= 1 and demand.first >= 0 for _, demand in asked), asked
    for _, demand in asked:
        (line,) = {str(line["error"]) for line in told if line["request"]["id"] == demand.id}
        assert line == "", "asked and refused"
    try:
        requests = control.read(file)
    except ConfigError as exc:
        assert not asked, "asked what cannot be read"
        assert said, "refused without a word"
        return str(exc.faults[0]).rpartition(": ")[2]
    assert len(asked) <= len(tracks) * len(requests), "a request was taken twice"
    meant = any(one.role == "actor" and any(map(one.includes, (0, 1))) for one in requests)
    assert bool(told) == meant or not said, "a request that was meant is not in the manifest"
    return f"{len(asked)} {[line['error'][-40:] for line in told][:1]}"


TRACED = ("/rlprof_live/control.py", "/rlprof_live/_mailbox.py", "/rlprof/config/_structure.py")
PARSER = Parser("requests", "json", TRACED, TOKENS, seeds, check)
