"""Engines with exactly the signatures of one release of vLLM."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from tests.fakes.vllm_engines import Profiler, Stand
from tests.signatures.record import number
from tests.vllm_adapter.signatures import RECORD

SAID = RECORD.kept()

Kind = Literal["AsyncLLM", "LLM"]


class SyncMPClient:
    """Stands for the client of an engine with processes of its own."""


def engine(
    release: str,
    kind: Kind = "AsyncLLM",
    *,
    directory: Path | str = "",
    tp: int = 1,
    launched: dict[str, Any] | None = None,
) -> Any:
    """Make an engine of *release* that profiles into *directory*; empty: it was launched without.

    *launched* is what else its ProfilerConfig says.
    """
    config = profiler_config(release, directory, launched or {})
    sessions = number(release) >= (0, 32)
    profiler = None
    if directory:
        profiler = Profiler(
            str(directory),
            workers=tp,
            is_guarded=sessions,
            is_sticky=not sessions,
            is_gzipped=vars(config).get("torch_profiler_use_gzip", True),
            **_names(release),
        )
    parallel = SimpleNamespace(
        tensor_parallel_size=tp, pipeline_parallel_size=1, data_parallel_size=1
    )
    whole = SimpleNamespace(
        parallel_config=parallel, device_config=SimpleNamespace(device_type="cpu")
    )
    whole.profiler_config = config
    processor = SimpleNamespace(request_states={})
    made = engine_class(release, kind)(profiler, whole, processor)
    inner = made
    if kind == "LLM":
        inner = made.llm_engine = inner_engine(release, made)
    inner.vllm_config, inner.output_processor = whole, processor
    inner.engine_core = SyncMPClient()
    return made


def _names(release: str) -> dict[str, str]:
    trace = "rank{rank}" if number(release) >= (0, 17) else "0f3a-rank-{rank}"
    if number(release) < (0, 32):
        return {"trace": trace, "table": "profiler_out_{rank}.txt"}
    return {"trace": trace}


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


def inner_engine(release: str, outer: Stand) -> Any:
    """Make what an LLM keeps inside: it answers for the methods the LLM itself has not."""
    names = [name for name, signature in SAID[release]["LLMEngine"].items() if signature]
    answers = {name: lambda name=name: outer._answer(name, {}) for name in names}
    return SimpleNamespace(**answers)


def profiler_config(release: str, directory: Path | str, launched: dict[str, Any]) -> Any:
    """Make a ProfilerConfig with the fields and defaults of that release."""
    fields = SAID[release]["ProfilerConfig"]
    known = {name: ast.literal_eval(default) for name, default in fields.items()}
    if set(launched) - set(known):
        raise TypeError(f"{release}: ProfilerConfig has no {sorted(set(launched) - set(known))}")
    known |= {"profiler": "torch", "torch_profiler_dir": str(directory)} if directory else {}
    return SimpleNamespace(**{**known, **launched})
