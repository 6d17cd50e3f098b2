"""Tables, captions, and the definitions that captions link, as every section writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._text import escaped, numbers, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlprof_report.values import Analysis, Definition
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
    analysis: Analysis,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    which: Sequence[int],
    window: str,
    *,
    more: str = "",
    words: Sequence[int] = (0,),
) -> str:
    """Return a table with its caption below; empty if there is no row."""
    return figure(table(heads, rows, words=words), caption(analysis, which, window, more))


def caption(analysis: Analysis, which: Sequence[int], window: str, more: str = "") -> str:
    """Return the sources of the figures *which*, their time range, and the filter."""
    known = {definition.number: definition for definition in analysis.definitions}
    figures = [known[one] for one in which if one in known]
    names = ", ".join(
        f'<a href="#figure-{one.number}">{one.number} {escaped(one.name, 60)}</a>'
        for one in figures
    )
    inputs = ", ".join(dict.fromkeys(one.inputs for one in figures))
    parts = [
        f"Figure{'s' if len(figures) > 1 else ''} {names}" if figures else "",
        f"From {escaped(inputs)}" if inputs else "",
        escaped(window),
        *(f"Filter: {escaped(text)}" for text in _filters(figures)),
        escaped(more),
    ]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _filters(figures: Sequence[Definition]) -> list[str]:
    texts = "; ".join(one.filter.rstrip(".") for one in figures if one.filter != "none")
    return ["; ".join(dict.fromkeys(texts.split("; ")))] if texts else []


def clean_window(analysis: Analysis) -> str:
    """Name the steps that medians are made of."""
    left = "; ".join(
        f"{state}: {numbers(steps)}" for state, steps in analysis.clean.left_out.items() if steps
    )
    count = len(analysis.clean.steps)
    words = f"{count:,} clean step{'' if count == 1 else 's'} ({numbers(analysis.clean.steps)})"
    return f"{words}, left out: {left}" if left else words


def step_window(step: Step) -> str:
    """Name the step that a picture shows."""
    state = "" if step.state == "clean" else f", {step.state}"
    return f"Step {step.step}, {seconds(step.seconds)}{state}"


def definitions(analysis: Analysis) -> str:
    """Return the section."""
    items = "".join(
        f'<div id="figure-{one.number}"><dt>{one.number}. {escaped(one.name)} '
        f"<small>from {escaped(one.inputs)}</small><dd>{escaped(one.formula, 2000)} "
        f"<br>Filter: {escaped(one.filter, 1000)}</div>"
        for one in analysis.definitions
    )
    return section(
        "definitions",
        "How each figure is defined",
        f'<dl class="defined">{items}</dl>' if items else "",
    )
