"""The trainer's side: starts the engine's process and calls it over a socket."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_BORN_S = 60
_KEY = "MINI_ENGINE_KEY"


class EngineError(Exception):
    """The engine refused, or is gone."""


class Engine:
    """One engine process; several threads may call it at a time."""

    def __init__(self, *, max_batch: int = 4, profiler: bool = False) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="mini-engine-")
        self._address = str(Path(self._home.name) / "socket")
        self._key = os.urandom(16)
        self._local = threading.local()
        argv = [sys.executable, "-m", "mini_engine", self._address, str(max_batch)]
        argv += ["--profiler"] if profiler else []
        here = str(Path(__file__).parent.parent)
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {**os.environ, "PYTHONPATH": path, _KEY: self._key.hex()}
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE)
        self._wait_until_born()

    def generate(self, prompts: Sequence[str], *, max_tokens: int = 16, seed: int = 0) -> list[str]:
        """Complete each prompt, the same way for the same seed."""
        return self._call("generate", list(prompts), max_tokens, seed)  # type: ignore[no-any-return]

    def start_profile(self, folder: str) -> None:
        """Record every iteration from now on, into a file in *folder*."""
        self._call("start_profile", folder)

    def stop_profile(self) -> None:
        """Stop recording and write the file; an EngineError if nothing was in progress."""
        self._call("stop_profile")

    def is_profiling(self) -> bool:
        """Whether it records."""
        return bool(self._call("is_profiling"))

    def close(self) -> None:
        """End the process, now."""
        self.process.terminate()
        self.process.communicate()
        self._home.cleanup()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wait_until_born(self) -> None:
        end = time.monotonic() + _BORN_S
        while self.process.poll() is None and time.monotonic() < end:
            with suppress(OSError):  # the socket's file is there a moment before it listens
                Client(self._address, "AF_UNIX", authkey=self._key).close()
                return
            time.sleep(0.01)
        raise EngineError(f"the engine did not start; it ended with {self.process.poll()}")

    def _call(self, method: str, *args: Any) -> Any:
        """Call the process; each thread has a connection of its own."""
        try:
            if not hasattr(self._local, "connection"):
                self._local.connection = Client(self._address, "AF_UNIX", authkey=self._key)
            self._local.connection.send((method, args))
            result, error = self._local.connection.recv()
        except (EOFError, OSError) as exc:
            with suppress(AttributeError):
                self._local.connection.close()
                del self._local.connection
            raise EngineError(f"the engine is gone: {exc!r}") from exc
        if error:
            raise EngineError(error)
        return result
