"""Section 5: the rollout: its replicas and why their slots were empty, its tail, its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof_report._page._chart import (
    WIDTH,
    Tick,
    chart,
    legend,
    line,
    seconds_axis,
    steps_up_to,
    strip,
)
from rlprof_report._page._table import caption, figure, section, step_window, table, tabled
from rlprof_report._page._text import NONE, escaped, number, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlprof_report.values.step import Replica, Rollout, Step

WHY = {
    "running": ("a request runs", "#44aa99"),
    "start": ("before the first request", "#bbbbbb"),
    "queued": ("queued by the engine", "#88ccee"),
    "tools": ("its trajectories are in tools", "#ddcc77"),
    "tail": ("only the tail is left", "#ee8866"),
    "outside": ("no trajectory", "#7788aa"),
    "finished": ("after the last request", "#aa4499"),
}
"""Share of slots → its name, its colour; in this order."""
_MOST = 64
_HEIGHT = 180


def rollout(chosen: Sequence[Step]) -> str:
    """Return the section: the slow step next to the median step."""
    steps = [step for step in chosen if step.rollout is not None]
    if not steps:
        return ""
    body = ""
    slow, first = steps[0], steps[0].rollout
    if first is not None:
        body += _slots(slow, first) + _tail(steps)
        body += _rate(slow, first) + _late(slow, first)
        body += _tools(slow, first)
    body += _numbers(steps) + _flow(slow)
    return section("rollout", "Rollout", body)


def _numbers(steps: Sequence[Step]) -> str:
    rollouts = [step.rollout for step in steps if step.rollout is not None]
    rows = [
        ("phase", [escaped(one.phase, 60) for one in rollouts]),
        ("took", [seconds(one.end_s - one.start_s) for one in rollouts]),
        ("trajectories, requests", [f"{one.trajectories:,}, {one.requests:,}" for one in rollouts]),
        ("tokens, per second", [_tokens(one) for one in rollouts]),
        ("time of a trajectory, p50, p99, max", [_three(one.trajectory_s) for one in rollouts]),
        ("tail after 90, 95, 99 %", [_listed(one.tail_s.values()) for one in rollouts]),
        ("slots in use", [percent(one.utilisation) for one in rollouts]),
        ("saved if replicas ended together", [seconds(one.even_gain_s) for one in rollouts]),
        (
            "tools, longest and median trajectory",
            [_listed((one.tools_longest_s, one.tools_median_s)) for one in rollouts],
        ),
        ("trajectories without a request", [seconds(one.no_request_s) for one in rollouts]),
    ]
    if any(one.queue_s for one in rollouts):
        rows.append(("in queue, p50, p99", [_three(one.queue_s) for one in rollouts]))
    if any(one.first_token_s for one in rollouts):
        rows.append(("first token, p50, p99", [_three(one.first_token_s) for one in rollouts]))
    if any(one.preemptions is not None for one in rollouts):
        rows.append(("preemptions", [number(one.preemptions) for one in rollouts]))
    names = ("slow step", "median step")
    heads = ("", *(f"{name} {step.step}" for name, step in zip(names, steps, strict=False)))
    which = [5, 6, 7, 8, 14] + ([15] if any(one.queue_s for one in rollouts) else [])
    window = "; ".join(step_window(step) for step in steps)
    return tabled(heads, [(name, *values) for name, values in rows], which, window)


def _tokens(one: Rollout) -> str:
    return f"{number(one.tokens)}, {number(one.tokens_per_s)}" if one.tokens else "not noted"


def _three(times: Mapping[str, float]) -> str:
    return _listed(times[key] for key in ("p50", "p99", "max") if key in times)


def _listed(times: Iterable[float]) -> str:
    return ", ".join(map(seconds, times)) or NONE


def _flow(step: Step) -> str:
    flow = step.flow
    if flow is None:
        return ""
    rows = [
        ("trainer idle", percent(flow.trainer_idle)),
        ("rollout idle", percent(flow.rollout_idle)),
        ("rollout and update at once", percent(flow.overlap)),
    ]
    if flow.lag:
        words = ", ".join(f"{escaped(name, 20)} {number(lag)}" for name, lag in flow.lag.items())
        rows.append(("weights lag by", f"{words} versions"))
    advice = f"<p>{escaped(flow.advice, 400)}</p>" if flow.advice else ""
    return figure(table(("", ""), rows) + advice, caption((11,), step_window(step)))


def _slots(step: Step, one: Rollout) -> str:
    ordered = sorted(one.replicas, key=lambda replica: (-replica.end_s, replica.name))
    rows = [
        (
            escaped(replica.name, 60),
            _bar(replica),
            percent(replica.running),
            f"{replica.slots:,}",
            f"{replica.requests:,}",
            number(replica.tokens) if replica.tokens else NONE,
            seconds(replica.end_s),
        )
        for replica in ordered[:_MOST]
    ]
    more = len(one.replicas) - len(rows)
    slots = "its slots over the rollout"
    heads = ("replica", slots, "in use", "slots", "requests", "tokens", "ends after")
    body = table(heads, rows, words=(0, 1))
    if not body:
        return ""
    used = [key for key in WHY if any(getattr(replica, key) for replica in one.replicas)]
    return figure(
        f"<h3>Slots of the replicas</h3>{body}" + legend(WHY[key] for key in used),
        caption(
            (6, 7), f"{step_window(step)}, {one.phase}",
            f"The {len(rows)} that end last; {more} more are in report.json" if more else "",
        ),
    )  # fmt: skip


def _bar(replica: Replica) -> str:
    shares = [(WHY[key][1], getattr(replica, key) or 0.0, key) for key in WHY]
    return strip(
        [(color, share, f"{WHY[key][0]}: {percent(share)}") for color, share, key in shares],
        label=", ".join(f"{key} {percent(share)}" for _, share, key in shares if share > 0),
    )


def _tail(steps: Sequence[Step]) -> str:
    rollouts = [(step, step.rollout) for step in steps if step.rollout and step.rollout.ended]
    if not rollouts:
        return ""
    high = max(one.ended[-1] for _, one in rollouts) or 1.0
    drawn, keys, said = [], [], ""
    step, slow = rollouts[0]
    late = slow.tail_s.get(f"{slow.late_share:g}", 0.0)
    if late > 0:
        said = f"<p>The last {_part(slow)} take {seconds(late)} of step {step.step}.</p>"
        wide = late / high * WIDTH
        begin = slow.ended[-1] / high * WIDTH - wide
        drawn.append(
            f'<rect x="{begin:.1f}" y="0" width="{wide:.1f}" height="{_HEIGHT}" fill="#ee8866" '
            'fill-opacity=".16"/>'
        )
    for color, (shown, one) in zip(("#ee8866", "#4477aa"), rollouts, strict=False):
        count = len(one.ended)
        points = [(0.0, float(_HEIGHT))]
        for at, end in enumerate(one.ended):
            x = end / high * WIDTH
            points += [(x, points[-1][1]), (x, _HEIGHT * (1 - (at + 1) / count))]
        drawn.append(line(points, color=color))
        keys.append((f"step {shown.step}", color))
    words = ", ".join(
        f"{seconds(value)} after {percent(float(share))}"
        for share, value in sorted(slow.tail_s.items())
    )
    return figure(
        "<h3>When trajectories ended</h3>"
        + chart(
            "".join(drawn),
            label=f"Share of trajectories that had ended, over time; step {step.step}: {words}",
            x=_below(high),
            y=[(share, percent(share)) for share in (0, 0.5, 0.95)],
            height=_HEIGHT,
        )
        + legend(keys)
        + said,
        caption((5,), "; ".join(step_window(step) for step, _ in rollouts)),
    )


def _rate(step: Step, one: Rollout) -> str:
    took = one.end_s - one.start_s
    pictures = "".join(
        f"<div><h3>{title}</h3>{_area(values, color, took, title)}</div>"
        for title, values, color in (
            ("Tokens per second", one.tokens_rate, "#4477aa"),
            ("Requests in flight", one.in_flight, "#44aa99"),
        )
        if any(values)
    )
    return figure(
        f'<div class="pair">{pictures}</div>' if pictures else "",
        caption((14,), f"{step_window(step)}, {one.phase}, from its beginning to its end"),
    )


def _area(values: Sequence[float], color: str, took: float, title: str) -> str:
    """Return *values*, equal bins of *took* seconds, as an area."""
    high = max(values)
    wide = WIDTH / len(values)
    path = "".join(
        f"L{at * wide:.1f} {140 * (1 - value / high):.1f}H{(at + 1) * wide:.1f}"
        for at, value in enumerate(values)
    )
    return chart(
        f'<path fill="{color}" fill-opacity=".75" d="M0 140{path}V140z"/>',
        label=f"{title}, at most {number(high)}",
        x=_below(took, 4),
        y=[(value / high, number(value)) for value in steps_up_to(high, 3)],
        height=140,
    )


def _below(high: float, most: int = 8) -> list[Tick]:
    return [(at / high, words) for at, words in seconds_axis(high, most)] if high else []


def _late(step: Step, one: Rollout) -> str:
    late = one.late
    if late is None:
        return ""
    rows = [
        ("longer in requests", seconds(late.requests_s)),
        ("longer in tools", seconds(late.tools_s)),
        ("longer elsewhere", seconds(late.other_s)),
    ]
    if late.tokens_ratio:
        rows.append(("tokens", f"{late.tokens_ratio:.1f} times as many"))
    rows.append(("the last ones", ", ".join(escaped(one, 40) for one in late.trajectories[:5])))
    return figure(
        f"<h3>The last {_part(one)} of trajectories, against the rest</h3>{table(('', ''), rows)}",
        caption((5,), step_window(step), "Means"),
    )


def _part(one: Rollout) -> str:
    return f"{100 * (1 - one.late_share):.0f} %"


def _tools(step: Step, one: Rollout) -> str:
    rows = [
        (escaped(name, 80), seconds(value)) for name, value in list(one.tools_by_name.items())[:20]
    ]
    heads = ("tool", "time in it, all trajectories")
    return tabled(heads, rows, (8,), step_window(step))
