"""A live run as one screen, from the lines written since the last read.

`tail` reads what is new, `live` keeps what a screen needs, `screen` draws it.
"""

from __future__ import annotations

from rlprof_report._top.live import Live
from rlprof_report._top.screen import screen

__all__ = ["Live", "screen"]
