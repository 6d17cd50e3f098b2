"""Engines that record their calls, and fail where a test asks for it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import attrs

from rlprof import Artifact, CaptureError, Launch, Order, Ready, hookimpl

calls: list[tuple[Any, ...]] = []


class Asked:
    """A part of an engine that records its calls, and fails or blocks in them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Every call of a method, with all its arguments."""
        self.raises: dict[str, Exception] = {}
        """Method → what it raises."""
        self.gates: dict[str, threading.Event] = {}
        """Method → what it waits for."""

    def called(self, method: str) -> list[dict[str, Any]]:
        return [given for name, given in self.calls if name == method]


def kineto(steps: list[tuple[int, str]], pid: int, rank: int) -> bytes:
    """Write a trace of *steps*, each with its time, as torch's profiler does."""
    zero = steps[0][0] if steps else time.time_ns()
    events = [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": pid, "tid": pid,
         "ts": (at - zero) / 1000, "dur": 1.0}
        for at, name in steps
    ]  # fmt: skip
    trace = {"schemaVersion": 1, "baseTimeNanoseconds": zero, "displayTimeUnit": "ms",
             "distributedInfo": {"backend": "gloo", "rank": rank, "pg_config": [{}]},
             "traceEvents": events}  # fmt: skip
    return json.dumps(trace, indent=0).encode()


@attrs.frozen
class MotorOptions:
    speed: int = 1
    gear: str = ""


class Motor:
    """An engine whose handle is a dictionary."""

    Options = MotorOptions
    options = MotorOptions()

    @hookimpl
    def configure(self, place, target, options, handle):
        calls.append(("configure", place, str(target), handle))
        self.options = options
        return Launch(engine_args={"speed": options.speed}) if place == "launch" else None

    @hookimpl
    def start(self, window, target, folder, handle):
        calls.append(("start", window.id, str(target), threading.current_thread().name))
        (folder / "raw.txt").write_text(f"{handle['name']} {window.id}")

    @hookimpl
    def stop(self, window, folder, handle):
        calls.append(("stop", window.id, handle["name"]))

    @hookimpl
    def export(self, capture, folder, out):
        name = f"{capture.stem}.txt"
        (folder / "raw.txt").rename(out / name)
        return [Artifact(name, kind="files", format="text")]


class Guest:
    """An engine that belongs to an event loop, which it names, and on which all calls must run."""

    Options = MotorOptions
    _loop: asyncio.AbstractEventLoop | None = None

    @hookimpl
    def configure(self, place, handle):
        return None if place == "launch" else self._arrive(handle)

    @hookimpl
    async def start(self, window, folder):
        (folder / "raw.txt").write_text(window.id)
        await self._there("start", window.id)

    @hookimpl
    async def stop(self, window):
        await self._there("stop", window.id)

    @hookimpl
    def export(self, capture, folder, out):
        return Motor().export(capture, folder, out)

    async def _arrive(self, handle):
        self._loop = handle["loop"]
        await self._there("configure", "")
        return Ready(loop=self._loop)

    async def _there(self, *call):
        async def work():
            calls.append(("begin", *call))
            await asyncio.sleep(0.1)
            calls.append(call)

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))


def register() -> None:
    import rlprof

    rlprof.register("engine", "motor", Motor)
    rlprof.register("engine", "guest", Guest)


class Hive:
    """An engine of several processes, which here are numbers: its handle is a list of them."""

    drives = True
    _open = None

    @hookimpl
    def configure(self, place, target, handle, workers):
        if place == "launch":
            return Launch(engine_args={"cells_of": target.rank})
        return self._tell(handle, workers.prepare())

    @hookimpl
    def start(self, window, handle, workers):
        if self._open is not None:
            raise CaptureError("a window is open already")
        self._open = window
        self._tell(handle, workers.begin(window))

    @hookimpl
    def stop(self, window, folder, handle, workers):
        was_open, self._open = self._open, None
        if was_open is not None:
            self._tell(handle, workers.end(window))
            (folder / "hive.txt").write_text("hive")

    @hookimpl
    def export(self, capture, folder, out):
        if not (folder / "hive.txt").exists() or (folder / "hive.txt").read_text() != "hive":
            raise CaptureError("the window was never closed")
        name = f"{capture.stem}.txt"
        (out / name).write_text("hive")
        return [Artifact(name, kind="files", format="text")]

    def _tell(self, handle, text):
        order = Order.read(text)
        for cell in handle:
            if not order.chooses(cell):
                continue
            member = order.follower(cell, {"cell": cell})
            if order.verb == "begin":
                order.begin(member)
            elif order.verb == "end":
                member.end(order.window, order.reason)
