"""The state of a vLLM engine, from statistics in its frontend; the engine itself is not called.

With statistics on, vLLM's schedulers send them along with their outputs, and the frontend keeps the
last ones for Prometheus. They are on by default for `AsyncLLM`, and off for `LLM`.
"""

from __future__ import annotations

from typing import Any

from rlprof_engine.counters import fetched, own, samples, totals

_METRICS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
)
_GAUGES = ("gauge_scheduler_running", "gauge_scheduler_waiting", "gauge_kv_cache_usage")


def kept(handle: Any) -> dict[str, float]:
    """Return the counters of an engine in this process."""
    inner = own(handle, "llm_engine") or handle
    states = own(own(inner, "output_processor"), "request_states")
    if not isinstance(states, dict):
        return {}
    return {"requests_in_flight": len(states), **_of_schedulers(inner, is_idle=not states)}


def _of_schedulers(inner: Any, *, is_idle: bool) -> dict[str, float]:
    """Return the last statistics of the schedulers."""
    scheduler = own(own(own(inner, "engine_core"), "engine_core"), "scheduler")
    if scheduler is not None:  # it runs in this process
        usage = scheduler.kv_cache_manager.usage
        return totals([len(scheduler.running)], [len(scheduler.waiting)], [usage])
    manager = own(inner, "logger_manager")
    for logger in own(manager, "stat_loggers") or ():
        gauges = [found for name in _GAUGES if isinstance(found := own(logger, name), dict)]
        values = [[own(one, "_value") for one in gauge.values()] for gauge in gauges]
        if len(gauges) == len(_GAUGES) and all(map(all, values)):  # Ray Serve has its own gauges
            running, waiting, usage = (
                [0.0 if is_idle else value.get() for value in found] for found in values
            )
            return totals(running, waiting, usage)
    return {}


def asked(address: str) -> dict[str, float]:
    """Ask a server for these metrics only; with several frontends, it returns only all of them."""
    found: dict[str, list[float]] = {}
    query = "&".join(f"name[]={name}" for name in _METRICS)
    for path in (f"/metrics?{query}", "/metrics"):
        found = found or samples(fetched(address + path), _METRICS)
    return totals(*(found.get(name, []) for name in _METRICS))
