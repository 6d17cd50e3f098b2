"""verl on a CPU, by verl's own registry of platforms: for tests and the demo only.

`VERL_USE_EXTERNAL_MODULES=verl_cpu VERL_PLATFORM=cpu` loads it in every process of verl. The
example gives Ray two GPUs that do not exist (`ray_kwargs.ray_init.num_gpus`): verl places workers
by them.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

if TYPE_CHECKING:
    from collections.abc import Callable


class _Index(str):
    """The device `cpu` where torch wants a device, and 0 where verl writes `cpu:{index}`."""

    __slots__ = ()

    def __format__(self, _: str) -> str:
        return "0"

    def __str__(self) -> str:
        return "0"

    __repr__ = __str__

    def __int__(self) -> int:
        return 0

    __index__ = __int__


class _Device(types.ModuleType):
    """torch.cpu, with what verl asks of torch.cuda."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


def _nothing(*_: Any, **__: Any) -> None:
    """Do what a CPU needs: nothing."""


INDEX = _Index("cpu")
DEVICE = _Device("verl_cpu_device")
vars(DEVICE).update(
    is_available=lambda: True,
    device_count=lambda: 1,
    current_device=lambda: INDEX,
    mem_get_info=lambda *_: (8 << 30, 16 << 30),
    get_device_name=lambda *_: "cpu",
    get_rng_state=lambda *_: torch.get_rng_state(),
    **dict.fromkeys(
        ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"),
        lambda *_: 0,
    ),
    **dict.fromkeys(
        ("empty_cache", "ipc_collect", "manual_seed", "manual_seed_all", "set_device",
         "reset_peak_memory_stats", "set_rng_state"),
        _nothing,
    ),
)  # fmt: skip


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    """What verl asks of a device."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = DEVICE

    is_available = staticmethod(lambda: True)
    current_device = staticmethod(lambda: INDEX)
    device_count = staticmethod(lambda: 1)
    set_device = synchronize = empty_cache = set_allocator_settings = staticmethod(_nothing)
    profiler_start = profiler_stop = cudart = staticmethod(_nothing)
    manual_seed = manual_seed_all = staticmethod(torch.manual_seed)
    get_device_capability = staticmethod(lambda *_: (None, None))
    communication_backend_name = staticmethod(lambda: "gloo")
    visible_devices_envvar = staticmethod(lambda: "CUDA_VISIBLE_DEVICES")
    nvtx_range = staticmethod(contextlib.nullcontext)
    ray_resource_name = staticmethod(lambda: "GPU")
    ray_noset_envvars = staticmethod(lambda: ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"])
    is_ipc_supported = staticmethod(lambda: False)


_init = torch.distributed.init_process_group


def _init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
    """Name the CPU once: verl asks for `cpu:gloo,<device>:<backend>`."""
    _init("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)


torch.distributed.init_process_group = _init_process_group
torch.Tensor.pin_memory = lambda self, *_, **__: self  # verl's reference policy pins its memory


def _load_by_reload(module: Any) -> None:
    """Have vLLM load weights the way that unpacks them first: on a CPU it packs them."""

    def update_weights_from_ipc(
        self: Any,
        peft_config: Any = None,  # noqa: ARG001 -- verl gives them
        base_sync_done: Any = None,  # noqa: ARG001
        use_shm: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        from verl.workers.rollout.vllm_rollout import bucketed_weight_transfer as transfer

        weights: dict[str, Any] = {}

        def keep(bucket: Any, *_: Any) -> None:
            weights.update((name, tensor.clone()) for name, tensor in bucket)

        handle = self._get_zmq_handle()
        receiver = transfer.BucketedWeightReceiver(handle, torch.device("cpu"), use_shm)
        receiver.receive_weights(keep)
        self.reload_weights(weights_iterator=iter(weights.items()))

    module.vLLMColocateWorkerExtension.update_weights_from_ipc = update_weights_from_ipc


def _pause_as_before(module: Any) -> None:
    """Translate verl's words for pausing into those of vLLM 0.32."""
    own = module.AsyncLLM.pause_generation
    if "wait_for_inflight_requests" in inspect.signature(own).parameters:
        return

    async def pause_generation(
        self: Any, *, wait_for_inflight_requests: bool = False, clear_cache: bool = True
    ) -> None:
        mode = "wait" if wait_for_inflight_requests else "abort"
        await own(self, mode=mode, clear_cache=clear_cache)

    module.AsyncLLM.pause_generation = pause_generation


class _AfterImport(importlib.abc.MetaPathFinder):
    """Changes a module of verl's as soon as it has been imported."""

    changes: dict[str, Callable[[Any], None]] = {  # noqa: RUF012 -- emptied as they are made
        "verl.workers.rollout.vllm_rollout.utils": _load_by_reload,
        "verl.workers.rollout.vllm_rollout.vllm_async_server": _pause_as_before,
    }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 -- its protocol
        change = self.changes.pop(name, None)
        spec = importlib.util.find_spec(name) if change else None
        if change is None or spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _AfterImport())
