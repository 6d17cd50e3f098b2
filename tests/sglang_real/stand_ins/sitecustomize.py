"""Stands in for packages that SGLang imports and that have no build for CPUs.

SGLang's schedulers and its detokenizer are processes of their own, spawned rather than forked,
so this must be found by each: the tests put this folder first on PYTHONPATH, where the interpreter
looks for a module of this name. The environments made here have no other such module. The one a
system may have (Debian's reports crashes) is not run in these processes, and is not missed.

Nothing here computes. What runs is SGLang's own path for CPUs, in plain torch.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any


class Kernels(ModuleType):
    """Stands in for `sgl_kernel`, whose wheels are for CUDA: all can be imported, nothing called.

    A test that calls a kernel would test this stand-in and not SGLang, so it must fail.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def kernel(*_: object, **__: object) -> None:
            raise NotImplementedError(f"{self.__name__}.{name}: there is no kernel for a CPU here")

        return type(name, (), {}) if name[0].isupper() else kernel


class Triton(ModuleType):
    """Stands in for `triton`, a gigabyte: decorates and annotates kernels that never run."""

    __version__ = "3.8.0"
    """torch and SGLang compare this version; it is the one that their wheels require."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__init__": lambda *_, **__: None})
        found = made if name[0].isupper() else Triton(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decorate: `@jit`, `@autotune(configs=...)`."""
        bare = len(args) == 1 and callable(args[0]) and not kwargs
        return args[0] if bare else lambda decorated: decorated


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds both stand-ins, with all their submodules, and makes torchvision importable."""

    stand_ins: dict[str, type[ModuleType]] = {"sgl_kernel": Kernels, "triton": Triton}
    absent = ("sgl_kernel.scalar_type",)
    """SGLang works without this module."""
    operators: Any = None
    """torchvision's operators: transformers imports it, and its library may be for CUDA."""

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == "torchvision._meta_registrations":  # its library is loaded by now, or is not
            self.declare("nms", "qnms")
        if name.partition(".")[0] not in self.stand_ins or name in self.absent:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def declare(self, *operators: str) -> None:
        """Declare the operators that torchvision describes, where no library has brought them."""
        import torch

        missing = [name for name in operators if not hasattr(torch.ops.torchvision, name)]
        if missing and self.operators is None:
            self.operators = torch.library.Library("torchvision", "FRAGMENT")
            for name in missing:
                self.operators.define(f"{name}(Tensor boxes, Tensor scores, float iou) -> Tensor")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.stand_ins[spec.name.partition(".")[0]](spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the class has it all."""


sys.meta_path.insert(0, Finder())
