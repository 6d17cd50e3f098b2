"""Section 1: the verdict, a few numbers, and each finding with its evidence and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._table import clean_window, section
from rlprof_report._page._text import escaped, median, numbers, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report.values import Analysis, Finding
    from rlprof_report.values.step import Step

_MOST = 12


def head(analysis: Analysis, chosen: Sequence[Step]) -> str:
    """Return the top of the page: which run, the verdict, and its key numbers."""
    name = analysis.run_id or analysis.run
    steps = len(analysis.steps)
    return (
        f'<header><p class="run">rlprof · run <b>{escaped(name, 80)}</b> · '
        f"{escaped(analysis.state)} · {steps:,} step{'' if steps == 1 else 's'} of "
        f"{escaped(analysis.whose or 'no process', 80)}</p>"
        f"<h1>{escaped(analysis.verdict, 600)}</h1>{_tiles(analysis, chosen)}</header>"
    )


def findings(analysis: Analysis) -> str:
    """Return a card for each finding, the largest first."""
    cards = "".join(_card(analysis, finding) for finding in analysis.findings[:_MOST])
    more = len(analysis.findings) - _MOST
    if more > 0:
        cards += f"<p>{more} smaller findings are in report.json.</p>"
    if cards:
        cards += (
            '<p class="note">Each bound holds on its own; do not add two of them. Findings use '
            f"{escaped(clean_window(analysis))}.</p>"
        )
    return section("findings", "Findings", cards)


def _card(analysis: Analysis, finding: Finding) -> str:
    evidence = "".join(f"<li>{escaped(words, 600)}" for words in finding.evidence)
    facts = [
        ("costs per step", f"{seconds(finding.seconds)} ({percent(finding.share)})"),
        ("removing it saves at most", seconds(finding.bound_s)),
        ("seen in steps", escaped(numbers(finding.steps))),
    ]
    if finding.where:
        where = ", ".join(f"<b>{escaped(one)}</b>" for one in finding.where)
        facts.append(("look at", f'<a href="#{finding.section}">{where}</a>'))
    items = "".join(f"<div><dt>{name}<dd>{value}</div>" for name, value in facts)
    when = "next" if analysis.state == "running" else "while the next run is live"
    command = f'<code class="run-it">{escaped(finding.command, 2000)}</code>'
    record = f"<p>Record this {when}: {command}</p>" if finding.command else ""
    return (
        f'<article class="finding"><h3><span class="cause">{escaped(finding.cause)}</span> '
        f"{escaped(finding.title, 600)}</h3><ul>{evidence}</ul>"
        f'<dl class="facts">{items}</dl>{record}</article>'
    )


def _tiles(analysis: Analysis, chosen: Sequence[Step]) -> str:
    tiles = []
    if analysis.clean.median_s is not None:
        tiles.append(("median clean step", seconds(analysis.clean.median_s)))
    if chosen:
        tiles.append((f"slow step, {chosen[0].step}", seconds(chosen[0].seconds)))
    clean = [step for step in analysis.steps if step.state == "clean" and step.seconds > 0]
    outside = median(step.unaccounted_s / step.seconds for step in clean)
    if outside is not None:
        tiles.append(("in no phase", percent(outside)))
    used = [step.rollout.utilisation for step in clean if step.rollout is not None]
    share = median(value for value in used if value is not None)
    if share is not None:
        tiles.append(("rollout slots in use", percent(share)))
    tiles.append(("cost of recording, whole run", seconds(analysis.cost_s)))
    return (
        '<dl class="tiles">'
        + "".join(f"<div><dt>{escaped(name)}<dd>{value}</div>" for name, value in tiles)
        + "</dl>"
    )
