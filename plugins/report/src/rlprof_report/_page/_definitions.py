"""Section 10: how each figure is defined, with its inputs and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._table import section
from rlprof_report._page._text import escaped

if TYPE_CHECKING:
    from rlprof_report.values import Analysis, Definition


def definitions(analysis: Analysis) -> str:
    """Return the section."""
    items = "".join(
        f'<div id="figure-{one.number}"><dt>{one.number}. {escaped(one.name)} '
        f"<small>from {escaped(one.inputs)}</small><dd>{escaped(one.formula, 2000)} "
        f"{_filter(one)}</div>"
        for one in analysis.definitions
    )
    return section(
        "definitions",
        "How each figure is defined",
        f'<dl class="defined">{items}</dl>' if items else "",
    )


def _filter(one: Definition) -> str:
    return "" if one.filter in {"", "none"} else f"<br>Filter: {escaped(one.filter, 1000)}"
