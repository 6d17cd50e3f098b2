"""rlprof's engine `sglang`: rollout replicas on SGLang.

`_options` what it can be asked · `_launch` what the engine must be born with · `_facts` what is
known of it · `_engine` and `_server` how it is reached, `_turns` who runs its loop · `_sglang` the
plugin, `_ways` how it chooses · `_native` SGLang's own profiler, `_request` what that is asked ·
`inside` our own capture, in the schedulers, and `_guard`, `_refusals`, `_stages`, `_folders`,
`_overdue`, which keep them alive · `_requests` the life of each request · `_export` what becomes of
the files.

Nothing here imports SGLang before the engine has. Every scheduler imports this package, whether it
is to be recorded or not: so nothing else is imported here until it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlprof_sglang._launch import server_args
    from rlprof_sglang._options import SglangOptions
    from rlprof_sglang._sglang import Sglang

__all__ = ["Sglang", "SglangOptions", "server_args"]

_WHERE = {"Sglang": "_sglang", "SglangOptions": "_options", "server_args": "_launch"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
