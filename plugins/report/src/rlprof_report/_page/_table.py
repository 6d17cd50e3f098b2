"""Tables, captions, and the definitions that captions link, as every section writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._definitions import DEFINITIONS
from rlprof_report._page._text import escaped, numbers, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int] = (0,)
) -> str:
    """Return a table of cells that are HTML already; columns *words* hold text, not figures."""
    align = ['class="w"' if at in words else "" for at in range(len(heads))]
    head = "".join(f"<th scope=col {align[at]}>{name}</th>" for at, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td {align[at]}>{cell}</td>" for at, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    if not body:
        return ""
    kind = "wide" if len(heads) > 3 else "wide narrow"
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="{kind}">{whole}</div>'


def section(name: str, title: str, body: str) -> str:
    """Return a part of the page under its heading; empty if the part is."""
    return f'<section id="{name}"><h2>{escaped(title)}</h2>{body}</section>' if body else ""


def figure(body: str, note: str) -> str:
    """Return a picture or table with its caption below."""
    return f"<figure>{body}<figcaption>{note}</figcaption></figure>" if body else ""


def tabled(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    which: Sequence[int],
    window: str,
    *,
    more: str = "",
    words: Sequence[int] = (0,),
) -> str:
    """Return a table with its caption below; empty if there is no row."""
    return figure(table(heads, rows, words=words), caption(which, window, more))


def caption(which: Sequence[int], window: str, more: str = "") -> str:
    """Return the names and the sources of the figures *which*, and their time range."""
    names = ", ".join(
        f'<a href="#figure-{one}">{one} {escaped(DEFINITIONS[one].name)}</a>' for one in which
    )
    inputs = ", ".join(dict.fromkeys(DEFINITIONS[one].inputs for one in which))
    parts = [
        f"Figure{'s' if len(which) > 1 else ''} {names}",
        f"From {escaped(inputs)}",
        escaped(window),
        escaped(more),
    ]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def clean_window(analysis: Analysis) -> str:
    """Name the steps that medians are made of."""
    left = "; ".join(
        f"{state}: {numbers(steps)}" for state, steps in analysis.clean.left_out.items()
    )
    count = len(analysis.clean.steps)
    words = f"{count:,} clean step{'' if count == 1 else 's'} ({numbers(analysis.clean.steps)})"
    return f"{words}, left out: {left}" if left else words


def step_window(step: Step) -> str:
    """Name the step that a picture shows."""
    state = "" if step.state == "clean" else f", {step.state}"
    return f"Step {step.step}, {seconds(step.seconds)}{state}"


def definitions() -> str:
    """Return the section."""
    items = "".join(
        f'<div id="figure-{number}"><dt>{number}. {escaped(one.name)} '
        f"<small>from {escaped(one.inputs)}</small><dd>{escaped(one.formula, 2000)}</div>"
        for number, one in DEFINITIONS.items()
    )
    return section("definitions", "How each figure is defined", f'<dl class="defined">{items}</dl>')
