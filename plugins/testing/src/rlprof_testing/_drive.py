"""Calls the hooks of one plugin as core does, and exports in another process as core does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from rlprof import plugins
from rlprof.answers import Ready, ready_of, runs_on_of
from rlprof.config import Faults, options_of
from rlprof.session._calls import HookThread, Overrun
from rlprof.session._exports import RAW
from rlprof.session.interpreter import command
from rlprof.types import Artifact, Capture, Target, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.session._loops import Link
    from rlprof.types import RunsOn

EXPORT_S = 120
"""How long the kit waits for an export or a launch in another process."""
ANSWER_S = 60
"""How long the kit waits for a hook on a separate thread."""
PATIENT = {"start_timeout_s": float(ANSWER_S), "stop_timeout_s": float(ANSWER_S)}
"""Limits of the kit's sessions: no test may fail only because the machine is busy."""
FIRST = Window(7, 8, "update_actor")
SECOND = Window(9, 10, "update_actor")
_RUN_ID = "kit-run"


@attrs.frozen
class Recorded:
    """A capture's folder as core leaves it: `capture.json`, and `raw` for the plugin."""

    folder: Path
    capture: Capture
    began_ns: int = 0
    """The wall clock before `start`; `ended_ns`: after `stop`."""
    ended_ns: int = 0

    @property
    def raw(self) -> Path:
        """The plugin's folder in the capture."""
        return self.folder / RAW

    def untimed(self) -> Recorded:
        """Return it without its end time, for a window that was not closed."""
        return attrs.evolve(self, ended_ns=0)

    def copy(self, to: Path) -> Recorded:
        """Return a copy below *to*, as a crash at this moment would leave it."""
        folder = to / self.folder.name
        shutil.copytree(self.folder, folder)
        return attrs.evolve(self, folder=folder)


@attrs.frozen
class Exported:
    """The result of an export in another process."""

    artifacts: tuple[Artifact, ...]
    error: str
    out: Path

    def file(self, artifact: Artifact) -> Path:
        """Return the file of *artifact*."""
        return self.out / artifact.path


class Driven:
    """One instance of a plugin, as core makes one per target; hooks run on the threads of core."""

    def __init__(
        self,
        kind: plugins.Kind,
        plugin: type[Any],
        name: str,
        options: Any,
        home: Path,
        *,
        link: Link | None = None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self.instance = plugin()
        self.link = link
        self.end = end
        """Ends the engine normally, if there is one; may be called repeatedly."""
        self._hooks = plugins.hooks(self.instance)
        self._kind = kind
        self._name = name
        self._home = home
        self._asked = json.loads(json.dumps(options))
        self._options = structured(plugin, self._asked)
        usual: RunsOn = "thread" if link is None else "process"
        self._ready = Ready(getattr(self.instance, "runs_on", usual))
        self._given: dict[str, Any] = {}
        if link is not None:
            self._given = {"handle": link.handle, "workers": link.workers}
        replica = None if link is None else 0
        role = "actor" if link is None else "rollout"
        self._target = Target(role, 0, 2, replica=replica, coordinates={"tp": 0})

    def prepare(self, window: Window) -> Recorded:
        """Make the folder of a capture, as core does before `start`."""
        plugin = type(self.instance)
        capture = Capture(
            run_id=_RUN_ID,
            target=self._target,
            window=window,
            tool=self._name,
            host="kit-host",
            pid=os.getpid(),
            options=self._asked,
            plugin=f"{plugin.__module__}:{plugin.__qualname__}",
            kind="engine" if self._kind == "engine" else "tool",
        )
        folder = self._home / f"window-{window.start_step}"
        (folder / RAW).mkdir(parents=True, exist_ok=True)
        (folder / "capture.json").write_text(json.dumps(attrs.asdict(capture)))
        return Recorded(folder, capture, began_ns=time.time_ns())

    def configure(self) -> Driven:
        """Configure it inside the process."""
        given = {"target": self._target, "options": self._options, **self._given}
        answer = self.call(lambda: self._hooks.configure(place="process", **given))
        self._ready = ready_of(answer, self._ready)
        return self

    @property
    def runs_on(self) -> str:
        """The place where core would call `start` and `stop`."""
        return str(runs_on_of(self._ready))

    def start(self, recorded: Recorded, folder: Path | None = None) -> Any:
        """Start the window of *recorded*, in *folder* if given."""
        given = self._about(recorded, folder) | {"target": self._target}
        return self.call(lambda: self._hooks.start(**given))

    def stop(self, recorded: Recorded, folder: Path | None = None) -> Recorded:
        """Stop the window, and note the time."""
        given = self._about(recorded, folder)
        self.call(lambda: self._hooks.stop(**given))
        return attrs.evolve(recorded, ended_ns=time.time_ns())

    def _about(self, recorded: Recorded, folder: Path | None) -> dict[str, Any]:
        window = recorded.capture.window
        return {"window": window, "folder": folder or recorded.raw, **self._given}

    def call(self, function: Callable[[], Any]) -> Any:
        """Call *function* where core would: here, or on a thread that the kit can abandon."""
        if self.link is None and self.runs_on == "thread":
            return function()
        return elsewhere(function if self.link is None else partial(self.link.settled, function))


def elsewhere(function: Callable[[], Any]) -> Any:
    """Call *function* on a separate thread, with a timeout."""
    thread = HookThread("rlprof-kit")
    try:
        return thread.call(function, timeout_s=ANSWER_S)
    except Overrun:
        pytest.fail(f"a hook did not answer within {ANSWER_S} s; it must return or raise")
    finally:
        thread.end()


def structured(plugin: type[Any], asked: Any) -> Any:
    """Make a value of the plugin's `Options`; if that fails, fail the test with the reason."""
    faults = Faults()
    value = options_of(plugin, asked, faults, path="options")
    if faults:
        problems = "; ".join(f"{path}: {message}" for path, all_ in faults.found.items()
                         for message in all_)  # fmt: skip
        pytest.fail(f"the options declared next to `plugin` are refused: {problems}")
    return value


def export_here(plugin: type[Any], recorded: Recorded, out: Path) -> Any:
    """Let a new instance export in this process; its exceptions propagate."""
    out.mkdir(parents=True, exist_ok=True)
    hooks = plugins.hooks(plugin())
    return hooks.export(capture=recorded.capture, folder=recorded.raw, out=out) or []


def export_elsewhere(recorded: Recorded, out: Path) -> Exported:
    """Export in another process, as core does; *recorded* cannot be used afterwards."""
    argv = command("rlprof.session.export_process")
    argv += [str(EXPORT_S), str(recorded.folder), str(out), str(out)]
    result = python(argv, cwd=recorded.folder)
    file = recorded.folder / "exported.json"
    assert file.exists(), (
        f"export: its process ended with {result.returncode} and reported no outcome; export must "
        f"return or raise. Its last output: {result.stderr[-2000:]}"
    )
    found = json.loads(file.read_bytes())
    artifacts = tuple(Artifact(**artifact) for artifact in found["artifacts"])
    return Exported(artifacts, found["error"], out)


def python(
    argv: list[str], cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python with the import path of this one, with a timeout."""
    path = os.pathsep.join(str(Path(place).absolute()) for place in sys.path if place)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RLPROF_")}
    try:
        return subprocess.run(
            argv,
            cwd=cwd,
            env=kept | {"PYTHONPATH": path} | (env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=EXPORT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"{' '.join(argv[1:4])} ... did not end within {EXPORT_S} s; hooks must return")
