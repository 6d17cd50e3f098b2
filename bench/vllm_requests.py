"""What it costs to know the life of each vLLM request: watching, per request and per token.

`.envs/vllm/bin/python bench/vllm_requests.py`

vLLM's own frontend state is fed by hand, with thousands of requests and no model: a request is
added, its tokens come, it leaves. In turn with and without a window open on it; what the window's
end writes down is counted in. CPU of the process.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import machine, verdict

from rlprof_engine.requests import FILE
from rlprof_vllm._requests import Requests

_REQUESTS = 4000
_TOKENS = 2
_LIVE = 200
"""Requests at a time."""
_ROUNDS = 31


class Frontend:
    """As much of an engine's frontend as requests go through."""

    def __init__(self) -> None:
        from vllm.v1.engine.output_processor import OutputProcessor

        self.output_processor = OutputProcessor(None, log_stats=True)
        self._added = 0

    def serve(self, requests: int, tokens: int) -> None:
        """Have *requests* come, get their *tokens* and leave."""
        from vllm.v1.engine import EngineCoreOutput, FinishReason
        from vllm.v1.metrics.stats import IterationStats

        for _ in range(requests // _LIVE):
            names = self.live()
            for token in range(tokens):
                reason = FinishReason.LENGTH if token == tokens - 1 else None
                outputs = [EngineCoreOutput(name, [7], finish_reason=reason) for name in names]
                if not token:
                    for output in outputs:
                        output.events = _events()
                self.output_processor.process_outputs(outputs, time.monotonic(), IterationStats())
        assert not self.output_processor.request_states

    def live(self) -> list[str]:
        """Have some requests come; return their names."""
        return [self._add() for _ in range(_LIVE)]

    def _add(self) -> str:
        from vllm import SamplingParams
        from vllm.v1.engine import EngineCoreRequest

        self._added += 1
        name = f"chatcmpl-{self._added:032x}"
        given: Any = {
            "request_id": f"{name}-1", "external_req_id": name, "prompt_token_ids": [1, 5, 6],
            "mm_features": None, "sampling_params": SamplingParams(max_tokens=_TOKENS),
            "pooling_params": None, "arrival_time": time.time(), "lora_request": None,
            "cache_salt": None, "data_parallel_rank": None,
        }  # fmt: skip
        self.output_processor.add_request(EngineCoreRequest(**given), None)
        return f"{name}-1"


def _events() -> list[Any]:
    from vllm.v1.engine import EngineCoreEvent, EngineCoreEventType

    kinds = (EngineCoreEventType.QUEUED, EngineCoreEventType.SCHEDULED)
    return [EngineCoreEvent.new_event(kind) for kind in kinds]


def bare(frontend: Frontend) -> float:
    """Serve them; return CPU seconds."""
    gc.collect()
    began = time.process_time()
    frontend.serve(_REQUESTS, _TOKENS)
    return time.process_time() - began


def watched(frontend: Frontend, folder: Path) -> float:
    """Serve them in a window; return the same."""
    gc.collect()
    began = time.process_time()
    window = Requests(frontend)
    window.start()
    frontend.serve(_REQUESTS, _TOKENS)
    window.stop(folder)
    spent = time.process_time() - began
    with (folder / FILE).open() as lines:
        assert sum(1 for _ in lines) == _REQUESTS + 1
    return spent


def token_costs(frontend: Frontend, steps: int = 600) -> tuple[float, float]:
    """Return CPU seconds of a token of requests that stay, without and with a window; medians."""
    from vllm.v1.engine import EngineCoreOutput
    from vllm.v1.metrics.stats import IterationStats

    processor = frontend.output_processor
    outputs = [EngineCoreOutput(name, [7]) for name in frontend.live()]
    plain = processor.request_states
    Requests(frontend).start()
    spent: dict[type, list[float]] = {}
    for states in (plain, processor.request_states) * steps:
        processor.request_states = states
        began = time.process_time()
        processor.process_outputs(outputs, time.monotonic(), IterationStats())
        spent.setdefault(type(states), []).append((time.process_time() - began) / _LIVE)
    without, within = map(statistics.median, spent.values())
    return without, within


def main() -> int:
    import vllm

    print(f"requests: {machine()}, vLLM {vllm.__version__}, {_REQUESTS} of {_TOKENS} tokens each")
    never, seen = Frontend(), Frontend()
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(bare(never), watched(seen, Path(folder))) for _ in range(_ROUNDS)][1:]
    request = statistics.median(ours - theirs for theirs, ours in pairs) / _REQUESTS
    without, within = token_costs(Frontend())
    alone = statistics.median(theirs for theirs, _ in pairs) / _REQUESTS
    print(f"  not watched: {alone * 1e6:.0f} us a request, {without * 1e6:.2f} us a token")
    holds = [
        verdict("CPU of a request, watched over not", request * 1e6, 30, "us"),
        verdict("CPU of a token, watched over not", (within - without) * 1e6, 0.1, "us"),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    os.environ["VLLM_LOGGING_LEVEL"] = "WARNING"
    sys.exit(main())
