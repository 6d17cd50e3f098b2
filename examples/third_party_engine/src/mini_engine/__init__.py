"""A small rollout engine: it has its own process, its own RPC and its own profiler.

It knows nothing of rlprof. `Engine` is what a trainer holds; `_server` is the process behind it,
`_profiler` what it can record of itself.

    with Engine() as engine:
        completions = engine.generate(["1 + 1 ="], max_tokens=32)
"""

from __future__ import annotations

from mini_engine._client import Engine, EngineError

__all__ = ["Engine", "EngineError"]
