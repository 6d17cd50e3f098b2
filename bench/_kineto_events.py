"""The events of one rank, printed as Kineto prints them, in the layout of two of its versions.

Separate from their files: here is what is recorded, there is where it lies. The mix is that of real
traces of GPUs: a quarter calls of operators, a quarter calls of CUDA, an eighth kernels, the rest
arrows between the two.
"""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_NS = 10**9
"""When all begin, after `BASE_NS`."""
BARRIER_NS = FIRST_NS + 5_000_000
"""When all leave the barrier."""
PID = 4242
"""The process number of every rank; that of its device is 0."""
HOST = PID, PID
"""Process and thread of all that runs on the host."""

Row = tuple[int, int]


class Layout(NamedTuple):
    """How a version of Kineto prints each sort of event."""

    slice: str
    flow: str
    meta: str
    mark: str


LAYOUTS = {
    "new": Layout(
        '\n  {\n    "ph": "X",\n    "cat": "%s",\n    "name": "%s",\n    "pid": %d,\n    "tid": %d,'
        '\n    "ts": %s,\n    "dur": %s\n    ,\n    "args": {\n      %s\n    }\n  }',
        '\n  {\n    "ph": "%s",\n    "id": %d,\n    "pid": %d,\n    "tid": %d,\n    "ts": %s,'
        '\n    "cat": "ac2g",\n    "name": "ac2g"\n    %s\n  }',
        '\n  {\n    "ph": "M",\n    "name": "%s",\n    "ts": %s,\n    "pid": %d,\n    "tid": %d,'
        '\n    "args": {\n      "%s": %s\n    }\n  }',
        '\n  {\n    "ph": "i",\n    \n    "s": "g",\n    "name": "%s",\n    "pid": "",'
        '\n    "tid": "",\n    "ts": %s\n    \n  }',
    ),
    "old": Layout(
        '\n  {\n    "ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d,'
        '\n    "ts": %s, "dur": %s,\n    "args": {\n      %s\n    }\n  }',
        '\n  {\n    "ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %s,'
        '\n    "cat": "ac2g", "name": "ac2g"%s\n  }',
        '\n  {\n    "name": "%s", "ph": "M", "ts": %s, "pid": %d, "tid": %d,'
        '\n    "args": {\n      "%s": %s\n    }\n  }',
        '\n  {\n    "name": "%s", "ph": "i", "s": "g",\n    "pid": "", "tid": "", "ts": %s\n  }',
    ),
}
_OPERATORS = (
    "aten::mm", "aten::addmm", "aten::native_layer_norm", "aten::add", "aten::copy_", "aten::to",
    "aten::_scaled_dot_product_flash_attention", "aten::silu", "aten::embedding", "aten::softmax",
    "autograd::engine::evaluate_function: MmBackward0", "FullyShardedDataParallel.forward",
)  # fmt: skip
_ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, "
    "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>)"
)
_KERNELS = (
    (_ADD, 7),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas", 7),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20),
)
"""And the stream that each runs on."""
_SHAPES = (
    '"External id": %d,"Record function id": %d, "Concrete Inputs": ["", "", "1"], "Input type":'
    ' ["c10::BFloat16", "c10::BFloat16", "Scalar"], "Input Strides": [[4096, 1], [1, 4096], []],'
    ' "Input Dims": [[8192, 4096], [4096, 11008], []], "Ev Idx": %d'
)
_LAUNCH = (
    '"External id": %d, "queued": 0, "device": 0, "context": 1, "stream": %d, "correlation": %d,'
    ' "registers per thread": 168, "shared memory": 0, "blocks per SM": 7.757576, "warps per SM":'
    ' 31.030303, "grid": [1024, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 31'
)


def metadata(layout: Layout, shift_ns: int) -> Iterator[str]:
    at = us(FIRST_NS + shift_ns)
    for pid, labels, place in ((PID, "CPU", PID), (0, "GPU 0", 5_000_000)):
        yield layout.meta % ("process_name", at, pid, 0, "name", '"python"')
        yield layout.meta % ("process_labels", at, pid, 0, "labels", f'"{labels}"')
        yield layout.meta % ("process_sort_index", at, pid, 0, "sort_index", place)
    yield layout.meta % ("thread_name", at, PID, PID, "name", f'"thread {PID} (python)"')
    for stream in (7, 20):
        yield layout.meta % ("thread_name", at, 0, stream, "name", f'"stream {stream} "')


def recorded(layout: Layout, rank: int, shift_ns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the events of operator after operator, without end, and when each is over.

    An operator calls another, launches a kernel and asks something that launches nothing; both
    calls have the end of an arrow. Every thousandth ends a step.
    """
    chance = random.Random(rank)  # noqa: S311 -- the same set every time
    busy_ns = {7: 0, 20: 0}  # until when the streams of the device are

    def drawn(cat: str, name: str, row: Row, times: tuple[int, int], args: str) -> str:
        at_ns, dur_ns = times
        return layout.slice % (cat, name, *row, us(at_ns + shift_ns), us(dur_ns), args)

    def arrow(ph: str, number: int, row: Row, at_ns: int) -> str:
        end = ', "bp": "e"' if ph == "f" else ""
        return layout.flow % (ph, number, *row, us(at_ns + shift_ns), end)

    waited_ns = 4_000_000 - 1_009 * rank
    note, begun = '"External id": 0,"Record function id": 0', BARRIER_NS - waited_ns
    yield BARRIER_NS, [drawn("user_annotation", "barrier", HOST, (begun, waited_ns), note)]
    step_ns = at_ns = BARRIER_NS + 10_000
    for number in count(1):
        dur_ns = chance.randrange(8_000, 60_000)
        launch_ns, asked_ns = at_ns + 2_000, at_ns + 5_000
        kernel, stream = _KERNELS[number % len(_KERNELS)]
        kernel_ns = max(launch_ns + chance.randrange(5_000, 60_000), busy_ns[stream] + 500)
        ran_ns = chance.randrange(3_000, 60_000)
        busy_ns[stream] = kernel_ns + ran_ns
        one, two = 2 * number, 2 * number + 1
        name = _OPERATORS[number % len(_OPERATORS)]
        outer, inner = _SHAPES % (number, number, number), f'"External id": {number},"Ev Idx": 1'
        call = f'"External id": {number}, "cbid": 211, "correlation": %d'
        launched = _LAUNCH % (number, stream, one)
        yield (
            at_ns + dur_ns,
            [
                drawn("cpu_op", name, HOST, (at_ns, dur_ns), outer),
                drawn("cpu_op", "aten::empty_strided", HOST, (at_ns + 500, dur_ns - 999), inner),
                drawn("cuda_runtime", "cudaLaunchKernel", HOST, (launch_ns, 2_101), call % one),
                arrow("s", one, HOST, launch_ns),
                drawn("kernel", kernel, (0, stream), (kernel_ns, ran_ns), launched),
                arrow("f", one, (0, stream), kernel_ns),
                drawn("cuda_runtime", "cudaStreamIsCapturing", HOST, (asked_ns, 901), call % two),
                arrow("f", two, HOST, asked_ns),
            ],
        )
        at_ns += dur_ns + 3_000
        if number % 1000 == 0:
            step = f"ProfilerStep#{number // 1000}"
            took_ns = at_ns - step_ns
            yield at_ns, [drawn("user_annotation", step, HOST, (step_ns, took_ns), note)]
            step_ns = at_ns


def us(ns: int) -> str:
    """Print whole nanoseconds as microseconds, exactly."""
    return f"{ns // 1000}.{ns % 1000:03d}"
