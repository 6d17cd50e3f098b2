"""Engines with exactly the signatures of one release of vLLM."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from tests.fakes.vllm_engines import Profiler, Stand
from tests.signatures.record import number
from tests.vllm_adapter.signatures import RECORD

SAID = RECORD.kept()

Kind = Literal["AsyncLLM", "LLM"]


def engine(
    release: str,
    kind: Kind = "AsyncLLM",
    *,
    directory: Path | str = "",
    tp: int = 1,
    launched: dict[str, Any] | None = None,
    workers: Sequence[Any] = (),
) -> Any:
    """Make an engine of *release* that profiles into *directory*, or not at all if it is empty."""
    known = SAID[release]["ProfilerConfig"].items()
    fields = {name: ast.literal_eval(default) for name, default in known} | (launched or {})
    if len(fields) > len(known):
        raise TypeError(f"{release}: its ProfilerConfig knows less than {launched}")
    if directory:
        own = {"profiler": "torch", "torch_profiler_dir": str(directory)}
        fields |= own | (launched or {})
    config = SimpleNamespace(**fields)
    sessions = number(release) >= (0, 32)
    names = {} if sessions else {"table": "profiler_out_{rank}.txt"}
    if number(release) < (0, 17):
        names["trace"] = "0f3a-rank-{rank}"
    profiler = None
    if directory:
        profiler = Profiler(
            str(directory),
            workers=tp,
            is_guarded=sessions,
            is_sticky=not sessions,
            is_gzipped=fields.get("torch_profiler_use_gzip", True),
            **names,
        )
    sizes = {"tensor_parallel_size": tp, "pipeline_parallel_size": 1, "data_parallel_size": 1}
    parallel, device = SimpleNamespace(**sizes), SimpleNamespace(device_type="cpu")
    whole = SimpleNamespace(parallel_config=parallel, profiler_config=config, device_config=device)
    processor = SimpleNamespace(request_states={})
    made = engine_class(release, kind)(profiler, whole, processor, workers)
    inner = made
    if kind == "LLM":
        names = [name for name, signature in SAID[release]["LLMEngine"].items() if signature]
        answers = {name: lambda name=name: made._answer(name, {}) for name in names}
        inner = made.llm_engine = SimpleNamespace(**answers)
    inner.vllm_config, inner.output_processor = whole, processor
    inner.engine_core = type("SyncMPClient", (), {})()  # it has processes of its own
    return made


def engine_class(release: str, kind: str) -> type[Stand]:
    """Make a class of that name with the methods of that release."""
    methods: dict[str, Any] = {}
    for name, signature in SAID[release][kind].items():
        if signature is not None:
            how = "await self._later" if signature.startswith("async") else "self._answer"
            exec(f"{signature}:\n    return {how}({name!r}, locals())", methods)  # noqa: S102
    del methods["__builtins__"]
    if kind == "AsyncLLM":
        methods["errored"] = property(lambda self: self.is_dead)
    return type(kind, (Stand,), methods)


class Worker:
    """One of *tp* times *pp* workers in replica *dp*, with the attributes of vLLM's."""

    def __init__(self, rank: int, tp: int = 1, pp: int = 1, dp: int = 0) -> None:
        sizes = {"tensor_parallel_size": tp, "pipeline_parallel_size": pp}
        parallel = SimpleNamespace(**sizes, data_parallel_index=dp)
        self.rank, self.vllm_config = rank, SimpleNamespace(parallel_config=parallel)

    def execute_model(self, batch: Any) -> str:
        return f"ran {batch}"

    def sleep(self) -> str:
        return "asleep"
