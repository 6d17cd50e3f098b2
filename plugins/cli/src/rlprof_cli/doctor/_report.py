"""Findings of a dry window: what its tool recorded, what it cannot, its times, or its failure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_cli.doctor._finding import Finding
from rlprof_cli.table import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.config import Limits
    from rlprof_cli.doctor._child import Answer
    from rlprof_cli.doctor._finding import Level
    from rlprof_run import CaptureResult

_HOOKS = "start", "stop", "export"
_REFUSED = re.compile(r"(?:start: not started: (?:configure: )?)?CaptureError: ")
_LATE = re.compile(r"was not answered within \w+_timeout_s")


@attrs.frozen
class Use:
    """One tool, with one set of options."""

    tool: str
    asked: Mapping[str, Any] = attrs.field(factory=dict)
    roles: tuple[str, ...] = ()
    """The roles that use it; none: it is installed, and no role asks for it."""

    @property
    def where(self) -> str:
        """The name of its findings."""
        return f"tool {self.tool}" + (f" of {', '.join(self.roles)}" if self.roles else "")


def report(
    use: Use, answer: Answer, capture: CaptureResult | None, limits: Limits
) -> list[Finding]:
    """Make findings of how the child ended and of the files in its run folder."""
    found = []
    advice = "training would have, too: leave it out of the run, or repair it"
    if answer.fault and answer.value is None:
        return [Finding("BAD", use.where, f"its dry window {answer.fault}", advice)]
    if answer.fault:
        what = f"after its dry window the process {answer.fault}"
        advice = "look at the tool, and at what every Python here loads (sitecustomize)"
        found.append(Finding("BAD", use.where, what, advice))
    if capture is None:
        last = f": {answer.raised[-1]}" if answer.raised else ""
        what = f"recorded nothing, and did not say why{last}"
        return [*found, Finding("BAD", use.where, what)]
    if answer.value["sample"] and capture.start_s is not None:  # else it was refused anyway
        what = f"its sample raised {answer.value['sample']}"
        found.append(Finding("warn", use.where, what, "no cost can be estimated; repair it"))
    outcome = _outcome(use, answer, capture)
    return [outcome, *_unsupported(use, capture), *_slow(use, capture, limits), *found]


def _outcome(use: Use, answer: Answer, capture: CaptureResult) -> Finding:
    notes = "; ".join(_REFUSED.sub("", note) for note in capture.notes)
    if capture.state == "whole":
        return Finding("ok", use.where, f"{_recorded(capture)}; {_times(answer, capture)}")
    if capture.state == "partial":
        return Finding("warn", use.where, f"{_recorded(capture)}, in part: {notes}")
    if capture.state == "empty":
        return Finding("warn", use.where, f"left nothing of a dry window{notes and ': '}{notes}")
    refused = any(_REFUSED.search(note) and not _LATE.search(note) for note in capture.notes)
    level: Level = "warn" if refused and not use.roles else "BAD"
    return Finding(level, use.where, f"{capture.state}: {notes or 'it did not say why'}")


def _recorded(capture: CaptureResult) -> str:
    events = sum(artifact.events or 0 for artifact in capture.artifacts)
    kilobytes = sum(artifact.size for artifact in capture.artifacts) / 1000
    count = len(capture.artifacts)
    files = f"{count} file" + ("s" if count != 1 else "")
    return f"recorded {events:,} events, {files}, {kilobytes:,.1f} kB"


def _times(answer: Answer, capture: CaptureResult) -> str:
    """Return how long each hook took; the first start in a process is the slowest."""
    times = {"configure": answer.value["opened_s"]}
    times |= {hook: getattr(capture, f"{hook}_s") or 0.0 for hook in _HOOKS}
    return ", ".join(f"{hook} {seconds(took_s)}" for hook, took_s in times.items())


def _unsupported(use: Use, capture: CaptureResult) -> list[Finding]:
    """Report unsupported options: a fault if the config names them, not if it is a default."""
    named = {str(word) for value in use.asked.values() for word in _words(value)} | set(use.asked)
    return [
        Finding(
            "BAD" if option in named else "warn",
            use.where,
            f"{option}: {why}",
            "remove it from the options, or run where it is available" if option in named else "",
        )
        for option, why in capture.unsupported.items()
    ]


def _words(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _slow(use: Use, capture: CaptureResult, limits: Limits) -> list[Finding]:
    found = []
    for hook in _HOOKS:
        limit = getattr(limits, f"{hook}_timeout_s")
        took_s = getattr(capture, f"{hook}_s") or 0.0
        if took_s > limit:
            what = f"{hook} took {took_s:.1f} s, more than limits.{hook}_timeout_s {limit:g}"
            advice = "a run uses it for one window only; raise the limit, or record less"
            found.append(Finding("BAD", use.where, what, advice))
    return found
