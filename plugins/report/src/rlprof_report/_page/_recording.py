"""Section 9: captures that are missing, the cost of recording, and the error of the clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._table import figure, section, table
from rlprof_report._page._text import escaped, seconds

if TYPE_CHECKING:
    from rlprof_report.values import Analysis

_MOST = 200


def recording(analysis: Analysis) -> str:
    """Return the section."""
    body = _captures(analysis) + _cost(analysis)
    if analysis.clocks:
        body += f"<h3>Clocks</h3><p>{escaped(analysis.clocks, 1000)}</p>"
    if analysis.notes:
        notes = "".join(f"<li>{escaped(note, 600)}" for note in analysis.notes[:100])
        body += f"<h3>What is left out, and what is unknown</h3><ul>{notes}</ul>"
    return section("recording", "Recording", body)


def _captures(analysis: Analysis) -> str:
    ordered = sorted(analysis.captures, key=lambda one: one.get("state") == "whole")
    rows = [tuple(_cell(one.get(key, "")) for key in _KEYS) for one in ordered[:_MOST]]
    whole = sum(one.get("state") == "whole" for one in ordered)
    words = f"{whole:,} of {len(ordered):,} captures are whole"
    more = f"; the first {_MOST} are shown" if len(ordered) > _MOST else ""
    return figure(
        table(_KEYS, rows, words=tuple(range(len(_KEYS)))),
        f"From the manifest. {words}{more}.",
    )


_KEYS = ("window", "target", "tool", "state", "notes")


def _cell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "<br>".join(escaped(one, 400) for one in value)
    return escaped(value, 400)


def _cost(analysis: Analysis) -> str:
    cost = f"Recording delayed the steps by {seconds(analysis.cost_s)} in all."
    note = f" {escaped(analysis.cost_note, 400)}" if analysis.cost_note else ""
    return f"<h3>What recording cost</h3><p>{cost}{note}</p>"
