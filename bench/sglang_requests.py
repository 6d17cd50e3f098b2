"""What it costs to know the life of each SGLang request: watching, per request and per token.

`.envs/sglang/bin/python bench/sglang_requests.py`

SGLang's own tokenizer manager is fed by hand, with thousands of requests and no model: a request is
added, its tokens come as a scheduler would send them, it leaves, and its answer is taken. In turn
with and without a window open on it; what the window's end writes down is counted in. CPU of the
process.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Any

from _measure import machine, verdict
from _stood_in import run

from rlprof_engine.requests import FILE, Watched
from rlprof_sglang._requests import Requests

_REQUESTS = 4000
_TOKENS = 2
_LIVE = 200
"""Requests at a time."""
_ROUNDS = 31


class Frontend:
    """A tokenizer manager, and what stands for the schedulers behind it."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self._added = 0

    async def serve(self, requests: int, tokens: int) -> None:
        """Have *requests* come, get their *tokens*, leave and be answered."""
        for _ in range(requests // _LIVE):
            states = self.live()
            for token in range(1, tokens + 1):
                await self.manager._handle_batch_output(outputs(list(states), token, tokens))
            await asyncio.sleep(0)  # the caller runs in a later turn of the loop
            for state in states.values():
                taken, state.out_list = state.out_list, []  # as it is done for who asked
                assert taken[-1]["meta_info"]["completion_tokens"] == tokens
        assert not self.manager.rid_to_state

    def live(self) -> dict[str, Any]:
        """Have some requests come; return their states, by name."""
        from sglang.srt.managers.io_struct import GenerateReqInput

        for _ in range(_LIVE):
            self._added += 1
            request = GenerateReqInput(
                rid=f"chatcmpl-{self._added:032x}",
                input_ids=[1, 5, 6],
                sampling_params={"max_new_tokens": _TOKENS},
                received_time=time.perf_counter(),
            )
            request.normalize_batch_and_arguments()
            self.manager._init_req_state(request)
        return dict(self.manager.rid_to_state)


def outputs(names: list[str], token: int, tokens: int | None) -> Any:
    """Return what a scheduler sends of a step: one token of each request, the last one of some."""
    from sglang.srt.managers.io_struct import BatchTokenIDOutput
    from sglang.srt.observability.req_time_stats import SchedulerReqTimeStats

    fields = BatchTokenIDOutput.__struct_fields__
    none = dict.fromkeys(fields[: fields.index("retraction_counts")])
    now, count = time.perf_counter(), len(names)
    reason = {"type": "length", "length": tokens} if token == tokens else None
    stats = []
    for _ in names:
        one = SchedulerReqTimeStats()
        one.wait_queue_entry_time = one.forward_entry_time = one.prefill_finished_time = now
        stats.append(one)
    return BatchTokenIDOutput(
        **none
        | {
            "rids": names, "finished_reasons": [reason] * count, "time_stats": stats,
            "output_ids": [array("q", [7])] * count, "prompt_tokens": [3] * count,
            "reasoning_tokens": [0] * count, "completion_tokens": [token] * count,
            "cached_tokens": [2] * count, "retraction_counts": [0] * count,
        }
    )  # fmt: skip


async def bare(frontend: Frontend) -> float:
    """Serve them; return CPU seconds."""
    gc.collect()
    began = time.process_time()
    await frontend.serve(_REQUESTS, _TOKENS)
    return time.process_time() - began


async def watched(frontend: Frontend, folder: Path) -> float:
    """Serve them in a window; return the same."""
    gc.collect()
    began = time.process_time()
    window = Requests(frontend.manager, has_metrics=True)
    window.start()
    await frontend.serve(_REQUESTS, _TOKENS)
    window.stop(folder)
    spent = time.process_time() - began
    lines = (folder / FILE).read_bytes().splitlines()
    assert len(lines) == _REQUESTS + 1
    return spent


async def token_costs(frontend: Frontend, steps: int = 600) -> tuple[float, float]:
    """Return CPU seconds of a token of requests that stay, without and with a window; medians."""
    names, manager = list(frontend.live()), frontend.manager
    plain = dict(manager.rid_to_state)
    Requests(manager, has_metrics=True).start()
    spent: dict[type, list[float]] = {}
    for states in (plain, manager.rid_to_state) * steps:
        manager.rid_to_state = states
        sent = outputs(names, 1, None)
        began = time.process_time()
        await manager._handle_batch_output(sent)
        spent.setdefault(type(states), []).append((time.process_time() - began) / _LIVE)
    return statistics.median(spent[dict]), statistics.median(spent[Watched])


def manager_of(model: str) -> Any:
    """Make a tokenizer manager with nobody behind it."""
    from sglang.srt.managers.tokenizer_manager import TokenizerManager
    from sglang.srt.runtime_context import publish
    from sglang.srt.server_args import PortArgs, ServerArgs

    tiny: Any = importlib.import_module("tests.sglang_real.tiny")
    given = ServerArgs(model_path=model, enable_metrics=True, **tiny.SMALL)
    publish(given, role="tokenizer")
    return TokenizerManager(given, PortArgs.init_new(given))


async def main(home: Path, model: str) -> int:
    import sglang

    print(
        f"requests: {machine()}, SGLang {sglang.__version__}, {_REQUESTS} of {_TOKENS} tokens each",
        flush=True,
    )
    frontend = Frontend(manager_of(model))
    gc.freeze()  # what is imported, 0.3 s a pass: 4000 requests make none or one, as it happens
    pairs = [(await bare(frontend), await watched(frontend, home)) for _ in range(_ROUNDS)][1:]
    request = statistics.median(ours - theirs for theirs, ours in pairs) / _REQUESTS
    without, within = await token_costs(frontend)
    alone = statistics.median(theirs for theirs, _ in pairs) / _REQUESTS
    print(f"  not watched: {alone * 1e6:.0f} us a request, {without * 1e6:.2f} us a token")
    holds = [
        verdict("CPU of a request, watched over not", request * 1e6, 30, "us"),
        verdict("CPU of a token, watched over not", (within - without) * 1e6, 0.1, "us"),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    if "here" in sys.argv:
        asked = json.loads(os.environ["DRIVE"])
        sys.exit(asyncio.run(main(Path(asked["home"]), asked["model"])))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(run(__file__, Path(folder), "here"))
