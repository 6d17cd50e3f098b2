"""rlprof's engine `sglang`: rollout replicas on SGLang.

`_sglang` the plugin · `_options` its options · `_installed` advice from the installed SGLang ·
`_launch` what to launch an engine with · `_facts` facts about it · `_engine` and `_server` calls
to it, `_turns` access to its loop · `_native` SGLang's own profiler, `_request` a request to it ·
`inside` our own capture, in the schedulers; `_guard` and `_refusals` keep those alive · `_words`
their messages · `_counters` the engine's state · `_requests` the life of each request · `_export`
artifacts of the files.

Nothing here imports SGLang before the engine does. Every scheduler imports this package, even if
it is never recorded. So this module imports nothing else until it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof_engine.launching import server_args
    from rlprof_sglang._options import SglangOptions
    from rlprof_sglang._sglang import Sglang

__all__ = ["Sglang", "SglangOptions", "server_args"]

_WHERE = {
    "Sglang": "rlprof_sglang._sglang",
    "SglangOptions": "rlprof_sglang._options",
    "server_args": "rlprof_engine.launching",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
