"""Section 3: upper bounds of single changes, with their assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._chart import strip
from rlprof_report._page._table import caption, clean_window, figure, section, table
from rlprof_report._page._text import escaped, median, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report.values import Analysis
    from rlprof_report.values.step import Step


def what_would_help(analysis: Analysis, chosen: Sequence[Step]) -> str:
    """Return the section: bounds in the slow step, and their median over clean steps."""
    if not chosen:
        return ""
    clean = [step for step in analysis.steps if step.state == "clean"]
    # Of a long run not every rollout is accounted for; a step without has no bound that is 0.
    clean = [step for step in clean if step.rollout is not None] or clean
    usual: dict[str, list[float]] = {}
    for one in (one for step in clean for one in step.helps):
        usual.setdefault(one.what, []).append(one.seconds)
    helps = {one.what: one for step in (*clean, chosen[0]) for one in step.helps}
    here = {one.what: one.seconds for one in chosen[0].helps}
    whole = chosen[0].seconds or 1.0
    ordered = sorted(helps, key=lambda what: -here.get(what, 0.0))
    rows = []
    for what in ordered:
        value = here.get(what, 0.0)
        times = usual.get(what, [])
        common = median([*times, *[0.0] * (len(clean) - len(times))])
        words = f"{escaped(what)}<br><small>if {escaped(helps[what].assumption, 400)}</small>"
        bar = strip([("#44aa99", min(1.0, value / whole), "")], label=percent(value / whole))
        rows.append(
            (
                words,
                seconds(value),
                percent(value / whole),
                bar,
                seconds(common),
            )
        )
    name = f"step {chosen[0].step}: at most"
    heads = ("change", name, "that is", "of the step", "median clean step")
    return section(
        "helps",
        "What would help",
        figure(
            table(heads, rows, words=(0, 3)),
            caption(
                (10,), f"Step {chosen[0].step} and {clean_window(analysis)}",
                "Each is an upper bound on its own; do not add two of them",
            ),
        ),
    )  # fmt: skip
