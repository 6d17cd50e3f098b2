"""verl 0.8 on a CPU, loaded in the place of `verl_cpu`: it has no registry of platforms yet.

What that module registers is set into verl's functions instead. With a vLLM newer than those that
verl 0.8 was written for, one name is missing.
"""

import sys
import types

from verl.utils import device

PLATFORMS = "verl.plugin", "verl.plugin.platform"


def _load_platform():
    """Import verl_cpu with a registry that keeps nothing."""
    for name in PLATFORMS:
        sys.modules[name] = types.ModuleType(name)
    registry = types.SimpleNamespace(register=lambda platform: lambda cls: cls)
    vars(sys.modules[PLATFORMS[1]]).update(PlatformBase=object, PlatformRegistry=registry)
    import verl_cpu

    for name in PLATFORMS:
        del sys.modules[name]
    return verl_cpu


verl_cpu = _load_platform()
DEVICE = {
    "get_torch_device": lambda: verl_cpu.DEVICE,
    "get_device_id": lambda: verl_cpu.INDEX,
    "get_nccl_backend": lambda: "gloo",
    "get_resource_name": lambda: "GPU",
    "is_support_ipc": lambda: False,
}
for _module in (device, sys.modules["verl.protocol"]):
    vars(_module).update({name: own for name, own in DEVICE.items() if hasattr(_module, name)})


def _train_as_on_cuda(module):
    def get_engine_cls(cls, model_type, backend):
        return cls._engines[model_type][backend]["cuda"]

    module.EngineRegistry.get_engine_cls = classmethod(get_engine_cls)


def _place_by_gpus(module):
    place, start = module.RayResourcePool.get_placement_groups, module.RayClassWithInitArgs.__call__

    def get_placement_groups(self, strategy="STRICT_PACK", name=None, device_name=None):
        return place(self, strategy, name, "cuda")

    def __call__(self, *args, **kwargs):
        return start(self, *args, **{**kwargs, "device_name": "cuda"})

    module.RayResourcePool.get_placement_groups = get_placement_groups
    module.RayClassWithInitArgs.__call__ = __call__


def _pad_in_torch(module):
    """Use what verl has for NPUs, in the place of flash_attn."""
    from verl.utils import npu_flash_attn_utils as plain

    functions = plain.index_first_axis, plain.pad_input, plain.rearrange, plain.unpad_input
    module._get_attention_functions = lambda: functions


def _name_experts(module):
    if not hasattr(module, "FusedMoE"):
        module.FusedMoE = type("FusedMoE", (), {})


def _name_devices(module):
    module.get_device_uuid = lambda index: f"CPU-{index}"
    _load_by_reload(module)


_LAYER = "vllm.model_executor.layers.fused_moe.layer"
_CHANGES = verl_cpu._AfterImport.changes
_load_by_reload = _CHANGES["verl.workers.rollout.vllm_rollout.utils"]
_CHANGES |= {
    "verl.workers.engine.base": _train_as_on_cuda,
    "verl.single_controller.ray.base": _place_by_gpus,
    "verl.utils.attention_utils": _pad_in_torch,
    "verl.workers.rollout.vllm_rollout.utils": _name_devices,
    _LAYER: _name_experts,
}
if _LAYER in sys.modules:  # in vLLM's own workers, which import verl late
    _CHANGES.pop(_LAYER)(sys.modules[_LAYER])
