"""What is asked at one time: all tracks of a process take it when the same step begins."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class Batch:
    """Demands that one thread hands to many tracks, while another goes through them."""

    is_out: bool = False
    """Whether a step has begun since all tracks knew: set before the first of them hears of it."""
