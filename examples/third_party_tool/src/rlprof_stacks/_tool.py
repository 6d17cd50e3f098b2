"""The plugin: its options and its four hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError, hookimpl
from rlprof_stacks._sampler import Sampler
from rlprof_stacks._trace import read_samples, write_trace

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Capture
    from rlprof.types import Place

RAW = "samples.jsonl"


def _positive(_: Any, __: Any, value: int) -> None:
    if value < 1:
        raise ValueError(f"expected at least 1, got {value}")


@attrs.frozen
class StacksOptions:
    """Options of `stacks`."""

    hz: int = attrs.field(default=50, validator=_positive)
    """Samples a second."""
    depth: int = attrs.field(default=60, validator=_positive)
    """Frames kept of each stack, counted from where its thread began."""


@attrs.define(eq=False)  # identity: plugins are compared
class Stacks:
    """Sample the Python stacks of all threads into a trace."""

    Options = StacksOptions
    runs_on = "process"

    options: StacksOptions = attrs.field(factory=StacksOptions)
    _sampler: Sampler | None = None

    @hookimpl
    def lighter(self, options: StacksOptions) -> StacksOptions | None:
        """Half as many samples, down to five a second."""
        return attrs.evolve(options, hz=options.hz // 2) if options.hz >= 10 else None

    @hookimpl
    def configure(self, place: Place, options: StacksOptions) -> None:
        """Keep the options; nothing is needed at launch."""
        if place == "process":
            self.options = options

    @hookimpl
    def start(self, folder: Path) -> Sampler:
        """Begin to sample; the first sample is taken before this returns."""
        if self._sampler is not None:
            raise CaptureError("a window is open already")
        sampler = Sampler(folder / RAW, self.options)
        sampler.start()
        self._sampler = sampler
        return sampler

    @hookimpl
    def stop(self) -> None:
        """Take the last sample and close the file."""
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.finish()

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Turn the samples into a trace; without their last line they are called partial."""
        samples = read_samples(folder / RAW)
        name = f"{capture.stem}.trace.json.gz"
        events = write_trace(out / name, samples, capture)
        return [
            Artifact(
                name,
                kind="trace",
                format="chrome-trace",
                status="whole" if samples.is_whole else "partial",
                note="" if samples.is_whole else "the process ended inside the window",
                events=events,
            )
        ]
