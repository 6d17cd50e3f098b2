"""The listener `live`: the figures of a live run, and requests to it.

What it shows: `_figures` numbers about the last step · `_metrics` these as a file · `_sampler`
counters, `_nvml` those of devices · `_pauses` of the garbage collector

Recording on demand: `control` requests · `_mailbox` checks them · `_demands` gives them steps ·
`_slow` finds slow steps
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof.hookspecs import hookimpl
from rlprof_live._figures import Figures
from rlprof_live._mailbox import Mailbox
from rlprof_live._metrics import Metrics
from rlprof_live._pauses import Pauses
from rlprof_live._sampler import Sampler
from rlprof_live._slow import SlowSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.rundir import RawSpan
    from rlprof.session._session import Session
    from rlprof.types import Target

__all__ = ["Live"]


class Live:
    """Counters, figures for a logger, and recording on demand: `rlprof capture`, slow steps."""

    _mailbox: Mailbox | None = None
    _slow: SlowSteps | None = None
    _metrics: Metrics | None = None
    _sampler: Sampler | None = None
    _pauses: Pauses | None = None

    @hookimpl
    def session_opened(self, session: Session) -> None:
        """Begin to watch; earlier requests were not meant for this process."""
        figures = Figures(time.monotonic_ns())
        if session.leads and session.config.slow_step is not None:
            self._slow = SlowSteps(session.config.slow_step)

        def see(spans: Sequence[RawSpan]) -> None:
            for raw in spans:
                made = figures.take(raw)
                if made is not None:
                    session.add_figures(raw[4], made)
            if self._slow is not None and spans[-1][0] == "step":
                self._slow.see(spans[-1], session.tracks)

        session.watch_spans(see)
        self._pauses = Pauses(session)
        home, name = session.run_dir, session.name
        prom = home / "metrics" / f"{name}.prom"
        self._metrics = Metrics(prom, session.run.run_id, session.target)
        if session.config.counters is not None:
            self._sampler = Sampler(
                home / "counters" / f"{name}.jsonl",
                session.config.counters,
                lambda reason: session.write("problem", reason=reason),
                lambda: session.is_recording,
            )
        if session.leads:  # else the process that leads it is asked
            self._mailbox = Mailbox(session)

    @hookimpl
    def engine_attached(self, target: Target, plugin: type[Any], handle: Any) -> None:
        """Read its counters from now on."""
        if self._sampler is not None:
            self._sampler.add(target, plugin, handle)

    @hookimpl
    def window_opened(self) -> None:
        """Read counters now."""
        if self._sampler is not None:
            self._sampler.hurry()

    @hookimpl
    def tick(self, session: Session) -> None:
        """Show the figures, and answer requests."""
        if self._metrics is not None:
            with suppress(OSError):
                self._metrics.write(session.figures())
        if self._mailbox is None:
            return
        if self._slow is not None:
            self._mailbox.take(self._slow.requests(session.config))
        self._mailbox.look()

    @hookimpl
    def session_closing(self) -> None:
        """Show and answer nothing any more."""
        self._mailbox = None
        if self._pauses is not None:
            self._pauses.end()
        if self._metrics is not None:
            self._metrics.remove()
            self._metrics = None
        if self._sampler is not None:
            self._sampler.close()
