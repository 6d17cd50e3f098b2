"""Asks an actor about itself, without waiting for its work if possible.

The question is sent by value, so it needs no rlprof where the actor runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_ray._member import aside, in_short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PATIENCE_S = 5.0


@attrs.frozen
class Look:
    """The answer of an actor."""

    python: str
    has_pip: bool
    """An environment that uv made has none."""
    plugins: tuple[str, ...]
    """The tools and engines of rlprof there; empty: it is not installed."""
    is_ordered: bool
    """Its calls run one by one, in the order they were made."""
    rank: int | None
    roles: tuple[str, ...]
    """The roles that a colocated worker reports."""
    engine: str
    """The package of its engine; empty: it has none."""
    size: int
    """The number of ranks of its engine."""
    url: str
    version: int | None
    run: str
    """The run folder of the fleet that records it already."""
    methods: tuple[str, ...]
    """The names of its class, which its calls have."""


def question() -> Callable[..., dict[str, Any]]:
    """Return the function to call in an actor: a closure, so that it is sent by value."""

    def look(actor: Any, engine: str, version: str) -> dict[str, Any]:
        import sys
        from importlib.metadata import entry_points
        from importlib.util import find_spec
        from pathlib import Path

        from ray._private.worker import global_worker

        core = global_worker.core_worker
        if not find_spec("rlprof_ray"):
            # Python reads .pth files when it starts; uv installs a checkout by them.
            files = [file for folder in sys.path for file in Path(folder).glob("*rlprof*.pth")]
            added = {line for file in files for line in file.read_text().splitlines()}
            sys.path += sorted(line for line in added - {*sys.path} if Path(line).is_dir())
        groups = ("rlprof.tools", "rlprof.engines") if find_spec("rlprof_ray") else ()
        found = [point.name for group in groups for point in entry_points(group=group)]
        inside = sys.modules.get("rlprof_ray._inside")
        followers = inside._followers if inside else {}  # noqa: SLF001 -- of the same package
        runs = [run for run, one in followers.items() if one.session.run_dir]
        numbers = [getattr(actor, name, None) for name in ("rank", "_rank")]
        way, _, method = engine.partition(":")
        held: Any = actor
        for part in engine.split(".") if engine and not method else ():
            held = getattr(held, part, None)
        held = None if held is actor else held
        owner = getattr(held, "llm_engine", held)
        parallel = getattr(getattr(owner, "vllm_config", None), "parallel_config", None)
        sizes = getattr(owner, "server_args", None)
        address = getattr(actor, method)() if way == "url" else None
        return {
            "python": sys.executable,
            "has_pip": find_spec("pip") is not None,
            "plugins": tuple(found),
            "is_ordered": not (
                core.current_actor_is_asyncio() or core.current_actor_max_concurrency() > 1
            ),
            "rank": next((one for one in numbers if type(one) is int), None),
            "roles": tuple(map(str, getattr(actor, "worker_dict", None) or ())),
            "engine": "" if held is None else type(held).__module__.partition(".")[0],
            "size": getattr(parallel, "world_size", None) or getattr(sizes, "tp_size", None) or 1,
            "url": str(getattr(address, "url", address) or ""),
            "version": getattr(actor, version, None) if version else None,
            "run": runs[0] if runs else "",
            "methods": tuple(name for name in dir(type(actor)) if name[:2] != "__"),
        }

    return look


def look_at(
    asked: Mapping[str, tuple[Any, str, str]], within_s: float, report: Callable[[str], None]
) -> tuple[dict[str, Look], dict[str, str]]:
    """Ask actors by id, each a handle, its engine and its version; return answers and failures.

    A working actor may answer only after its current call.
    """
    import ray

    how, until = question(), time.monotonic() + within_s
    waiting = {aside(handle, how, *more): id_ for id_, (handle, *more) in asked.items()}
    looks: dict[str, Look] = {}
    failed: dict[str, str] = {}
    is_reported = False
    while waiting and time.monotonic() < until:
        done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=_PATIENCE_S)
        for ref in done:
            id_ = waiting.pop(ref)
            try:
                looks[id_] = Look(**ray.get(ref))
            except ray.exceptions.RayError as exc:
                failed[id_] = in_short(exc)
        if waiting and not is_reported:
            is_reported = True
            report(f"waiting for actors at work to answer between two calls: {len(waiting)}")
    failed |= dict.fromkeys(waiting.values(), f"has not answered for {within_s:g} s")
    return looks, failed
