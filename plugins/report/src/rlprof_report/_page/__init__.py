"""The report as one HTML file: it makes no request, and is complete without its script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rlprof_report._page._bars import bars_of
from rlprof_report._page._color import colors_of
from rlprof_report._page._counters import counters
from rlprof_report._page._device import device
from rlprof_report._page._gantt import gantt, still
from rlprof_report._page._helps import what_would_help
from rlprof_report._page._path import critical_path
from rlprof_report._page._ranks import ranks
from rlprof_report._page._recording import recording
from rlprof_report._page._rollout import rollout
from rlprof_report._page._steps import where_the_time_goes
from rlprof_report._page._table import definitions
from rlprof_report._page._text import escaped, seconds
from rlprof_report._page._verdict import findings, head

if TYPE_CHECKING:
    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step

__all__ = ["notebook", "page"]


def page(analysis: Analysis) -> str:
    """Return *analysis* as a whole HTML document."""
    chosen, colors = _chosen(analysis), colors_of(analysis)
    body = "".join(
        (
            findings(analysis),
            where_the_time_goes(analysis, colors),
            what_would_help(analysis, chosen),
            critical_path(chosen, colors),
            rollout(chosen),
            ranks(analysis, chosen),
            device(analysis),
            gantt(analysis, chosen, colors),
            counters(analysis),
            recording(analysis),
            definitions(),
        )
    )
    links = "".join(
        f'<a href="#{name}">{title}</a>'
        for name, title in re.findall(r'<section id="([a-z-]+)"><h2>([^<]+)', body)
    )
    bars = bars_of(analysis, colors, show=chosen[0].step if chosen else None)
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escaped(analysis.run_id or analysis.run, 80)} · rlprof</title>"
        f"<style>{_asset('page.css')}</style></head><body>{head(analysis, chosen)}"
        f'<nav aria-label="Sections">{links}</nav><main>{body}</main>'
        f'<script type="application/json" id="data">{_json(bars)}'
        f"</script><script>{script}</script></body></html>"
    )


def notebook(analysis: Analysis) -> str:
    """Return the slow step of *analysis* as a Gantt over all processes, for a notebook."""
    chosen, colors = _chosen(analysis), colors_of(analysis)
    verdict = f"<p><b>{escaped(analysis.verdict, 600)}</b></p>"
    if not chosen or not analysis.lanes:
        return verdict
    step = chosen[0]
    svg, hidden = still(analysis, step, colors)
    more = f", {hidden:,} processes not shown" if hidden else ""
    return f"{verdict}<p>Step {step.step}, {seconds(step.seconds)}{more}</p>{svg}"


def _chosen(analysis: Analysis) -> list[Step]:
    """Choose the steps to show: the slowest of the first finding, else the slowest clean one.

    Then comes the median one, if it is another. A step that rlprof itself slowed down is there only
    if there is no other. Empty: there is no step.
    """
    finished = [step for step in analysis.steps if step.state != "unfinished"]
    clean = [step for step in finished if step.state == "clean"]
    of = clean or finished or list(analysis.steps)
    first = set(analysis.findings[0].steps) if analysis.findings else set()
    blamed = [step for step in of if step.step in first]
    chosen = sorted(blamed or of, key=lambda step: -step.seconds)[:1]
    ordered = sorted(clean, key=lambda step: step.seconds)
    median = ordered[(len(ordered) - 1) // 2 :][:1]
    return chosen + [one for one in median if one is not chosen[0]]


def _json(value: Any) -> str:
    """Return *value* as JSON that cannot end a script block, with any names in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028 either
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
