"""The engine's process: requests wait in a queue, and each iteration adds a token to some."""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Connection, Listener
from queue import Empty, SimpleQueue
from typing import Any

from mini_engine._profiler import Profiler

_WORDS = [
    "so",
    "we",
    "add",
    "two",
    "and",
    "then",
    "carry",
    "one",
    "to",
    "get",
    "the",
    "sum",
    "which",
    "is",
]


class _Request:
    """One prompt on its way."""

    def __init__(self, prompt: str, max_tokens: int, seed: int) -> None:
        self.text: list[str] = []
        self.left = max_tokens
        self.done = threading.Event()
        self._state = sum(prompt.encode()) + 7919 * seed + 1

    def decode(self) -> None:
        """Add one token; what a model would do in an iteration."""
        for _ in range(300):  # so that an iteration takes a moment
            self._state = (1103515245 * self._state + 12345) % 2**31
        self.text.append(_WORDS[self._state % len(_WORDS)])
        self.left -= 1


class _Loop(threading.Thread):
    """Iteration after iteration over whatever is running."""

    def __init__(self, max_batch: int, profiler: Profiler | None) -> None:
        super().__init__(daemon=True)
        self.waiting: SimpleQueue[_Request] = SimpleQueue()
        self._max_batch = max_batch
        self._profiler = profiler

    def run(self) -> None:
        """Decode for ever."""
        running: list[_Request] = []
        while True:
            running += self._admit(len(running))
            began = self._profiler.now() if self._profiler is not None else 0
            for request in running:
                request.decode()
            if self._profiler is not None:
                self._profiler.iteration(began, len(running))
            for request in [request for request in running if request.left <= 0]:
                running.remove(request)
                request.done.set()

    def _admit(self, running: int) -> list[_Request]:
        """Take what fits into the batch; with nothing to do, wait for the next request."""
        admitted = [] if running else [self.waiting.get()]
        try:
            while running + len(admitted) < self._max_batch:
                admitted.append(self.waiting.get_nowait())
        except Empty:
            pass
        return admitted


def serve(address: str, max_batch: int, *, can_profile: bool) -> None:
    """Answer calls, each connection on a thread of its own."""
    threading.Thread(target=_end_with_the_trainer, daemon=True).start()
    profiler = Profiler() if can_profile else None
    loop = _Loop(max_batch, profiler)
    loop.start()
    key = bytes.fromhex(os.environ.pop("MINI_ENGINE_KEY"))
    with Listener(address, "AF_UNIX", authkey=key) as listener:
        while True:
            connection = listener.accept()
            threading.Thread(target=_answer, args=(connection, loop, profiler), daemon=True).start()


def _end_with_the_trainer() -> None:
    """End when the trainer has, however it did: the pipe to it closes then."""
    sys.stdin.read()
    os._exit(0)


def _answer(connection: Connection[Any, Any], loop: _Loop, profiler: Profiler | None) -> None:
    while True:
        try:
            method, args = connection.recv()
        except (EOFError, OSError):
            return
        try:
            connection.send((_do(method, args, loop, profiler), ""))
        except (RuntimeError, OSError) as exc:
            connection.send((None, str(exc)))


def _do(method: str, args: tuple[Any, ...], loop: _Loop, profiler: Profiler | None) -> Any:
    if method == "generate":
        prompts, max_tokens, seed = args
        requests = [_Request(prompt, max_tokens, seed) for prompt in prompts]
        for request in requests:
            loop.waiting.put(request)
        for request in requests:
            request.done.wait()
        return [" ".join(request.text) for request in requests]
    if profiler is None:
        raise RuntimeError("this engine was started without a profiler; start it with one")
    if method == "is_profiling":
        return profiler.is_active
    return getattr(profiler, method.removesuffix("_profile"))(*args)
