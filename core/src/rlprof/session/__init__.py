"""Who records: the session of one process, its tools and their state.

`_open` makes it · `_session` steps, phases, windows · `_scope` what `with` does · `_window` the
window that is open · `_recorder` one tool, guarded · `_boundary` what keeps training safe ·
`_scribe` the helper thread · `_exports` and `export_process` what becomes of raw data ·
`_annotate` functions as phases · `_off` nothing at all. Nothing is imported here: who is off needs
`_off` alone.
"""

from __future__ import annotations
