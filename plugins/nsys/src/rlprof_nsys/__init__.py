"""rlprof's tool `nsys`: windows recorded by Nsight Systems, each a finished report of its own.

`_export` what becomes of a report: `_convert` has nsys turn it into SQLite and tables, `_sqlite`
reads that row by row, `_host_events` and `_device_events` make events of the rows, on the tracks
of `_tracks`, and `_trace` writes them.
"""
