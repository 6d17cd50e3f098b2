"""What stands in for kernels is imported with ease, and is never taken for the real one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sglang_real.conftest import STAND_INS


def run(code):
    """Run *code* where the stand-ins are found; return all that it prints."""
    env = os.environ | {"PYTHONPATH": str(STAND_INS)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    return done.stdout + done.stderr


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "code",
    ["import sgl_kernel; sgl_kernel.rmsnorm(1)", "from sgl_kernel.gemm import fp8; fp8(out=2)"],
)
def test_a_kernel_that_is_called_raises(code):
    """So that no figure of these tests comes from one."""
    assert "there is no kernel for a CPU here" in run(code)


def test_what_triton_decorates_stays_what_it_is():
    """Bare, with options, in a module of any depth; its types can be named."""
    code = """
import triton, triton.language.extra.libdevice as far
from triton import Config
@triton.autotune(configs=[Config({})], key=["n"])
@triton.jit
def kernel(n: triton.language.constexpr): return n
print(kernel(7), triton.__version__, far.__name__)
"""
    assert run(code) == "7 3.8.0 triton.language.extra.libdevice\n"
