"""The processes that died: the step, as their fleet's driver or their own spans know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_run._fields import target_of
from rlprof_run._lines import last_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlprof.types import Target
    from rlprof_run._run import Process, Run

_NAMED = 3
"""Processes that a note names, one for each step; the others are counted."""
_LOOKED_AT = 64
"""Processes whose last step is looked for."""


@attrs.frozen
class Death:
    """What the driver of a fleet learned of a member that died."""

    target: Target
    process: str
    """The stem of its files; empty: it never answered."""
    step: int | None
    """None: in no step, or it is not known in which."""
    error: str

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Death:
        """Read a line of the manifest."""
        target, step = target_of(line), line["step"]
        if target is None:
            raise ValueError(line)
        known = None if step is None else int(step)
        return cls(target, str(line["process"]), known, str(line["error"]))


def with_deaths(
    processes: Iterable[Process], deaths: Iterable[Death], problems: list[str]
) -> list[Process]:
    """Add the step of its death to each process that died, and the causes to *problems*."""
    found = {process.name: process for process in processes}
    for death in deaths:
        process = found.get(death.process)
        if process is not None and process.state != "died":  # its session was closed before
            continue
        if process is not None:
            found[process.name] = attrs.evolve(process, died_in=death.step)
        where = "" if death.step is None else f" in step {death.step}"
        problems.append(f"{death.target}: died{where}: {death.error}")
    return list(found.values())


def died(run: Run) -> str:
    """Say which processes died, and when: `actor 1/2 died in step 5`; empty: none of them."""
    dead = [one for one in run.processes if one.state == "died"]
    found: dict[str, list[str]] = {}
    for one in dead[:_LOOKED_AT]:
        found.setdefault(_when(run, one), []).append(str(one.target))
    words = []
    for when, targets in list(found.items())[:_NAMED]:
        more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
        words.append(f"{targets[0]}{more} died{when}")
    named = sum(map(len, list(found.values())[:_NAMED]))
    return ", ".join([*words, *([f"{len(dead) - named} more died"] if len(dead) > named else [])])


def _when(run: Run, process: Process) -> str:
    if process.died_in is not None:
        return f" in step {process.died_in}"
    last = max(_ended(run, process), default=None)
    return "" if last is None else f" after step {last}"


def _ended(run: Run, process: Process) -> Iterator[int]:
    """Give the last steps that it wrote itself."""
    for line in last_lines(run.path / "spans" / f"{process.name}.jsonl"):
        if line.get("kind") == "step" and type(line.get("step")) is int:
            yield line["step"]
