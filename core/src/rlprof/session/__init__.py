"""Who records: the session of one process, its tools and their state.

From what training calls down to what a plugin hears:

`_open` and `_begin` make it · `_session` steps and phases · `_scope` what `with` does ·
`_trajectory` a sample's way through an agent loop · `_annotate` functions as phases · `_spans` for
who has no session at hand · `_off` nothing at all
`_track` one target, and when its windows open · `_instruments` what records it · `_window` the
window that is open · `_recorder` one plugin, guarded · `_caller` on which thread and how long ·
`_worker` a thread that can be given up · `_link` the way to an engine · `_boundary` what keeps
training safe · `_shortfall` steps that never came
`_scribe` the helper thread · `_mailbox` what a live run is asked · `_batch` what all tracks take
with one step · `_exports` and `export_process` what becomes of raw data · `salvage` the same for
the dead · `_scratch` what of theirs is believed · `interpreter` the processes all these start
`_pressure` lighter options · `calibration` and `calibrate_process` what a tool costs

`_means` is what they share. Nothing is imported here: who is off needs `_off` alone.
"""

from __future__ import annotations
