"""`python -m mini_engine ADDRESS MAX_BATCH [--profiler]`: the engine's process."""

from __future__ import annotations

import sys

from mini_engine._server import serve

address, max_batch, *flags = sys.argv[1:]
serve(address, int(max_batch), can_profile="--profiler" in flags)
