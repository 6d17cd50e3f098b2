"""A tool that records its calls, and tools that fail in any hook."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError, hookimpl

if TYPE_CHECKING:
    from pathlib import Path

calls: list[tuple[Any, ...]] = []
"""What every fake tool of this process was called with, in order."""

gate = threading.Event()
"""Hooks that hang wait for it."""


@attrs.frozen
class FakeOptions:
    level: int = 1
    raises_in: str = ""
    hangs_in: str = ""
    unsupported: tuple[str, ...] = ()
    artifacts: int = 1


class Ranges:
    def __init__(self, options: FakeOptions, name: str) -> None:
        self.name = name
        self.options = options
        self.applied = {"level": options.level}
        self.unsupported = dict.fromkeys(options.unsupported, "not here")

    def push(self, name, payload):
        calls.append((self.name, "push", name, dict(payload)))
        _misbehave(self.options, "push")

    def pop(self):
        calls.append((self.name, "pop"))

    def minibatch(self):
        calls.append((self.name, "minibatch"))


class Fake:
    Options = FakeOptions
    name = "fake"
    runs_on = "thread"
    options = FakeOptions()

    @hookimpl
    def configure(self, place, target, options):
        calls.append((self.name, "configure", place, str(target)))
        self.options = options
        if place == "process":
            _misbehave(options, "configure")

    @hookimpl
    def start(self, window, folder: Path):
        calls.append((self.name, "start", window.id, threading.current_thread().name))
        _misbehave(self.options, "start")
        (folder / "raw.txt").write_text(window.id)
        return Ranges(self.options, self.name)

    @hookimpl
    def stop(self, window):
        calls.append((self.name, "stop", window.id, threading.current_thread().name))
        _misbehave(self.options, "stop")

    @hookimpl
    def export(self, capture, folder: Path, out: Path):
        options = capture.options
        if options.get("raises_in") in ("export", f"export:{capture.window.phase}"):
            raise CaptureError("export says no")
        if options.get("raises_in") == "export:die":
            print("dying", flush=True)
            os._exit(3)
        if options.get("hangs_in") == "export":
            time.sleep(60)
        made = []
        for number in range(options.get("artifacts", 1)):
            name = f"{capture.stem}-{number}.txt"
            text = (folder / "raw.txt").read_text()
            (out / name).write_text(json.dumps({"raw": text, "level": options.get("level", 1)}))
            made.append(Artifact(name, kind="files", format="text", events=3))
        return made


class Costly(Fake):
    """A tool that says what it costs, and what is lighter."""

    name = "costly"

    @staticmethod
    @hookimpl
    def lighter(options):
        return attrs.evolve(options, level=options.level - 1) if options.level else None

    @staticmethod
    def sample(rounds):
        for _ in range(rounds):
            sum(range(1000))


class Other(Fake):
    name = "other"


class Anywhere(Fake):
    name = "anywhere"
    runs_on = "process"


class Bare:
    """The smallest possible tool."""

    @hookimpl
    def start(self, window):
        calls.append(("bare", "start", window.id))


def _misbehave(options: FakeOptions, hook: str) -> None:
    if options.raises_in == hook:
        raise RuntimeError(f"{hook} went wrong")
    if options.hangs_in == hook:
        gate.wait(30)


def register() -> None:
    import rlprof

    for tool in (Fake, Other, Anywhere, Costly):
        rlprof.register("tool", tool.name, tool)
    rlprof.register("tool", "bare", Bare)
