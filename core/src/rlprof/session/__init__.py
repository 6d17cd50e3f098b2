"""Who records: the session of one process, its tools and their state.

`_open` makes it · `_session` steps, phases, windows · `_scope` what `with` does · `_window` the
window that is open · `_recorder` one tool, guarded · `_boundary` what keeps training safe ·
`_scribe` the helper thread · `_exports` and `export_process` what becomes of raw data ·
`_annotate` functions as phases · `_off` nothing at all.
"""

from __future__ import annotations

from rlprof.session._annotate import annotate
from rlprof.session._off import Off
from rlprof.session._open import open  # noqa: A004
from rlprof.session._session import Session

__all__ = ["Off", "Session", "annotate", "open"]
