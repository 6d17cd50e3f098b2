"""rlprof's engine `vllm`: rollout replicas on vLLM.

`_vllm` the plugin · `_options` its options · `_installed` advice from the installed vLLM ·
`_launch` what to launch an engine with · `_engine` and `_server` calls to an engine · `_facts` what
is known of it without a call · `_native` vLLM's own profiler · `inside` our own capture, in the
workers · `_counters` its state · `_requests` the life of each request · `_export` artifacts of the
files.

Nothing here imports vLLM before the engine does.
"""

from __future__ import annotations

from rlprof_engine.launching import server_args
from rlprof_vllm._options import VllmOptions
from rlprof_vllm._vllm import Vllm

__all__ = ["Vllm", "VllmOptions", "server_args"]
