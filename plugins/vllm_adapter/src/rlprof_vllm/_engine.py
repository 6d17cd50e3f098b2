"""How an engine is reached, and what is known of it without asking it anything.

Asking can hurt: a call that fails in the workers leaves answers unread, and every later call of
the engine gets the answer of the one before. So what can be seen from outside is looked at first.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from rlprof import CaptureError
from rlprof_vllm.inside import METHOD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

CONTENTS = {
    "stack": "torch_profiler_with_stack",
    "shapes": "torch_profiler_record_shapes",
    "memory": "torch_profiler_with_memory",
    "flops": "torch_profiler_with_flops",
}
"""Contents of the tool torch, as vLLM's own profiler calls them."""
_OLD_CONTENTS = {
    "stack": "VLLM_TORCH_PROFILER_WITH_STACK",
    "shapes": "VLLM_TORCH_PROFILER_RECORD_SHAPES",
    "memory": "VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY",
    "flops": "VLLM_TORCH_PROFILER_WITH_FLOPS",
}
"""The variables that said so before 0.13."""
_METHODS = ("is_sleeping", "is_paused", "collective_rpc", "start_profile", "stop_profile")
_COUNTS = {
    "delay_iterations": "VLLM_PROFILER_DELAY_ITERS",
    "max_iterations": "VLLM_PROFILER_MAX_ITERS",
}
"""How it counts engine steps, and the variables that said so in 0.12."""
_NOT_BEGUN = (400, 422)
"""A server that answers so has not asked the engine."""
_LOOK_S = 0.5
"""How often it is looked whether an engine that does not answer is still alive."""
_HTTP_S = 3600
"""A server answers `/stop_profile` when all is written, which takes minutes; core's own limit is
what counts."""


class RefusedError(CaptureError):
    """It has not begun; what may be recording there is somebody else's to stop."""


class Engine(Protocol):
    """One engine, whatever it is made of."""

    facts: Facts

    @property
    def is_errored(self) -> bool:
        """Whether it is known to be dead."""

    async def look(self) -> None:
        """Find out what cannot be seen without asking; nothing asked can hurt."""

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the engine."""


@attrs.frozen
class Facts:
    """What can be seen of an engine from outside."""

    kind: str
    """What reaches it: `AsyncLLM`, `LLM`, `http`, or the handle's own class."""
    version: str = ""
    parameters: tuple[str, ...] = ()
    """What its `start_profile` takes."""
    profiler: str | None = None
    """vLLM's own profiler as the engine was launched: `torch`, `cuda`, `proton`, empty for none;
    None: that cannot be seen."""
    directory: str | None = None
    """Where that one writes."""
    at_launch: Mapping[str, int] = attrs.field(factory=dict)
    """How it counts engine steps unless asked otherwise."""
    contents: tuple[str, ...] = ()
    """What vLLM's own profiler was launched to record beside operators."""
    records_frontend: bool = False
    """Whether it records this very process, too."""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    has_layout: bool = False
    """Whether the sizes above are known."""
    device: str = ""
    is_here: bool = False
    """Whether its only worker lives in this very process."""
    can_tell_workers: bool = False
    """Whether rlprof's code is in its workers."""
    methods: tuple[str, ...] = ()

    @property
    def workers(self) -> int:
        """How many workers it has."""
        return self.tp * self.pp * self.dp

    @property
    def is_npu(self) -> bool:
        """Whether vllm-ascend runs the workers, whose profiler is behind what vLLM asks of it."""
        return self.device == "npu"

    @property
    def has_prefix(self) -> bool:
        """Whether each session has a prefix of its own: before 0.32 the first one's stayed."""
        return "profile_prefix" in self.parameters and self.has_iterations

    @property
    def has_iterations(self) -> bool:
        """Whether each session counts engine steps of its own: since 0.32, and not on NPUs."""
        return "max_iterations" in self.parameters and not self.is_npu


def reach(handle: Any, directory: str) -> Engine:
    """Find out what *handle* is; raise CaptureError if it is no engine that can be recorded."""
    if isinstance(handle, str):
        return _Server(handle, directory)
    if not any(hasattr(handle, name) for name in ("start_profile", "collective_rpc")):
        raise CaptureError(
            f"vllm: {type(handle).__name__} is no engine: it has neither start_profile nor "
            "collective_rpc; attach an AsyncLLM, an LLM, or the address of a server"
        )
    return _Object(handle)


class _Object:
    """An AsyncLLM, an LLM, or anything with methods of their names."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._inner = getattr(handle, "llm_engine", handle)
        self.facts = _facts(handle)

    @property
    def is_errored(self) -> bool:
        """Whether it is known to be dead."""
        return getattr(self._handle, "errored", False) is True

    async def look(self) -> None:
        """All is seen."""

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call it on the engine's own loop, if it has one, and never cut it short there."""
        owner = self._handle if hasattr(self._handle, method) else self._inner
        result = getattr(owner, method)(*args, **kwargs)
        if not inspect.isawaitable(result):
            return result
        loop = _loop_of(self._handle)
        if loop is None or loop is asyncio.get_running_loop():
            return await self._answered(asyncio.ensure_future(result), method)
        there = asyncio.run_coroutine_threadsafe(_awaited(result), loop)
        return await self._answered(asyncio.wrap_future(there), method)

    async def _answered(self, call: asyncio.Future[Any], method: str) -> Any:
        """Wait for the answer as long as the engine lives: one that dies leaves calls open."""
        call.add_done_callback(_seen)
        while not (await asyncio.wait({call}, timeout=_LOOK_S))[0]:
            if self.is_errored and not (await asyncio.wait({call}, timeout=_LOOK_S))[0]:
                raise CaptureError(f"vllm: the engine died before it answered {method}")
        return call.result()


def _seen(call: asyncio.Future[Any]) -> None:
    """Look at how a call ended that nobody waits for any more."""
    if not call.cancelled():
        call.exception()


async def _awaited(promise: Awaitable[Any]) -> Any:
    return await promise


def _loop_of(handle: Any) -> asyncio.AbstractEventLoop | None:
    """Return the loop an AsyncLLM lives on; None: it has none, or any will do."""
    task = getattr(handle, "output_handler", None)
    return task.get_loop() if isinstance(task, asyncio.Task) else None


def _facts(handle: Any) -> Facts:
    start = getattr(handle, "start_profile", None)
    inner = getattr(handle, "llm_engine", handle)
    config = getattr(inner, "vllm_config", None)
    parallel = getattr(config, "parallel_config", None)
    known = tuple(name for name in _METHODS if hasattr(handle, name))
    if hasattr(inner, "is_sleeping") and "is_sleeping" not in known:
        known += ("is_sleeping",)  # an LLM has it inside
    if parallel is None or callable(parallel):  # a stand-in whose attributes are all methods
        return Facts(type(handle).__name__, parameters=_parameters(start), methods=known)
    profiler = getattr(config, "profiler_config", None)
    return Facts(
        type(handle).__name__,
        version=_version(),
        parameters=_parameters(start),
        profiler=_old_profiler() if profiler is None else profiler.profiler or "",
        directory=_old_directory() if profiler is None else profiler.torch_profiler_dir,
        contents=_old_contents() if profiler is None else _contents(profiler),
        at_launch=_old_counts() if profiler is None else _counts(profiler),
        records_frontend=profiler is not None and not profiler.ignore_frontend,
        tp=parallel.tensor_parallel_size,
        pp=parallel.pipeline_parallel_size,
        dp=parallel.data_parallel_size,
        has_layout=True,
        device=str(getattr(getattr(config, "device_config", None), "device_type", "")),
        is_here=_is_here(inner),
        can_tell_workers=_has_our_code() and hasattr(handle, "collective_rpc"),
        methods=known,
    )  # fmt: skip


def _parameters(function: Any) -> tuple[str, ...]:
    """Name what *function* takes; a function of any arguments says nothing."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(one.name for one in found if one.kind not in kinds)


def _version() -> str:
    import sys

    return str(getattr(sys.modules.get("vllm"), "__version__", ""))


def _old_profiler() -> str:
    """Before 0.13 the environment switched it on."""
    return "torch" if _old_directory() else ""


def _old_directory() -> str:
    import os

    return os.environ.get("VLLM_TORCH_PROFILER_DIR", "")


def _counts(profiler: Any) -> dict[str, int]:
    return {name: getattr(profiler, name, 0) for name in _COUNTS}


def _old_counts() -> dict[str, int]:
    """Ask the vLLM in this process how it reads its environment."""
    import sys

    envs = sys.modules.get("vllm.envs")
    return {name: getattr(envs, variable, 0) for name, variable in _COUNTS.items()}


def _old_contents() -> tuple[str, ...]:
    import sys

    envs = sys.modules.get("vllm.envs")
    return tuple(word for word, name in _OLD_CONTENTS.items() if getattr(envs, name, False))


def _contents(profiler: Any) -> tuple[str, ...]:
    return tuple(word for word, name in CONTENTS.items() if getattr(profiler, name, False))


def _is_here(inner: Any) -> bool:
    """Whether the engine runs in this process, its worker with it."""
    core = getattr(inner, "engine_core", None)
    return type(core).__name__ == "InprocClient"


def _has_our_code() -> bool:
    """Whether vLLM has loaded our plugin here; it then loads it in the workers, too."""
    import sys

    inside = sys.modules.get("rlprof_vllm.inside")
    return inside is not None and bool(inside.installed)


class _Server:
    """vLLM's HTTP server."""

    def __init__(self, address: str, directory: str) -> None:
        self._address = address.rstrip("/")
        self.facts = Facts("http", directory=directory)

    @property
    def is_errored(self) -> bool:
        """Never known before it is asked."""
        return False

    async def look(self) -> None:
        """Read what it can do from its own description; its profiler's folder nobody tells."""
        paths = (await self._ask("GET", "/openapi.json", missing={})).get("paths", {})
        takes_body = "requestBody" in paths.get("/start_profile", {}).get("post", {})
        version = (await self._ask("GET", "/version", missing={})).get("version", "")
        self.facts = attrs.evolve(
            self.facts,
            version=str(version),
            parameters=("profile_prefix", "max_iterations") if takes_body else (),
            profiler=None if "/start_profile" in paths else "",
            can_tell_workers="/collective_rpc" in paths and await self._has_our_code(),
            methods=tuple(name for name in _METHODS if f"/{name}" in paths),
        )

    async def _has_our_code(self) -> bool:
        """Ask each worker for the names it knows: a call that cannot fail in any of them."""
        found = await self.call("collective_rpc", "__dir__")
        return bool(found) and all(METHOD in names for names in found)

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Ask the route of that name."""
        if method.startswith("is_"):
            return bool((await self._ask("GET", f"/{method}")).get(method))
        if method == "collective_rpc":
            body = {"method": args[0], "args": list(kwargs.get("args", ()))}
            return (await self._ask("POST", f"/{method}", body) or {}).get("results")
        return await self._ask("POST", f"/{method}", kwargs)

    async def _ask(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, missing: Any = None
    ) -> Any:
        return await asyncio.to_thread(self._answer, verb, path, body, missing)

    def _answer(self, verb: str, path: str, body: Mapping[str, Any] | None, missing: Any) -> Any:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(  # noqa: S310 -- the address the user attached
            self._address + path, data, {"Content-Type": "application/json"}, method=verb
        )
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_S) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as exc:
            if exc.code == 404 and missing is not None:
                exc.close()
                return missing
            raise _refusal(self._address, path, exc) from None
        except OSError as exc:
            raise CaptureError(f"vllm: {self._address} does not answer: {exc}") from None
        return json.loads(text) if text.strip() else None


def _refusal(address: str, path: str, exc: urllib.error.HTTPError) -> CaptureError:
    said = exc.read(500).decode("utf-8", "replace")
    exc.close()
    if exc.code == 404:
        return RefusedError(
            f"vllm: {address} has no {path}: it was launched without a profiler; launch it with "
            "the arguments that rlprof.launch gives"
        )
    if exc.code == 409:
        return RefusedError(f"vllm: somebody else is profiling {address}")
    kind = RefusedError if exc.code in _NOT_BEGUN else CaptureError
    return kind(f"vllm: {address}{path} answered {exc.code}: {said}")
