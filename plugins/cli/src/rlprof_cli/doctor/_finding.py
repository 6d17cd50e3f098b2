"""A finding: the result of one check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Level = Literal["ok", "warn", "BAD"]
"""`ok`: nothing to do. `warn`: a run works, with less, or at a cost. `BAD`: something that the
config asks for will not work here."""


@attrs.frozen
class Finding:
    """*where: what is wrong; what to do*, and its level."""

    level: Level
    where: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.where}: {self.what}{advice}"


_LEVELS: dict[str, Level] = {"note": "ok", "warning": "warn", "fault": "BAD"}


def advised(where: str, advice: Mapping[str, str]) -> Finding:
    """Make a finding of the advice of a plugin: an `Advice` as plain data."""
    about = f", {advice['about']}" if advice["about"] else ""
    return Finding(_LEVELS.get(advice["level"], "warn"), where + about, advice["text"])


def unless_wrong(where: str, what: str, wrong: Sequence[Finding]) -> list[Finding]:
    """Return the findings in *wrong*, or the finding that all is well if there are none."""
    return list(wrong) or [Finding("ok", where, what)]
