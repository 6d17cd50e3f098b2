"""rlprof's engine `vllm`: rollout replicas on vLLM.

`_options` what it can be asked · `_launch` what the engine must be born with · `_engine` how it is
reached, and what is known of it without asking · `_vllm` the plugin · `_native` vLLM's own profiler
· `inside` our own capture, in the workers · `_requests` the life of each request · `_export` what
becomes of the files.

Nothing here imports vLLM before the engine has.
"""

from __future__ import annotations

from rlprof_vllm._launch import server_args
from rlprof_vllm._options import VllmOptions
from rlprof_vllm._vllm import Vllm

__all__ = ["Vllm", "VllmOptions", "server_args"]
