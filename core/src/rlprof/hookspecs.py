"""The contract of every plugin: four verbs, four kinds; the docstrings are the law.

| hook        | Tool | Engine | Exporter | fires                                              |
|-------------|------|--------|----------|----------------------------------------------------|
| `configure` | yes  | yes    |          | at launch, and again inside the process            |
| `start`     | yes  | yes    |          | a window opens                                     |
| `stop`      | yes  | yes    |          | it closes, however it closes                       |
| `export`    | yes  | yes    | yes      | after stop, in another process, perhaps days later |

An exporter may have `export_files`, too, for files that rlprof did not make. A `Listener` has hooks
of its own: it records nothing, and hears what happens.

A plugin is a class without constructor arguments whose hooks carry `@rlprof.hookimpl`. A hook
takes only the arguments it uses, by name. Core makes one instance per target and tool and calls
it alone: what one plugin does never starts, stops or delays another.

What a tool's class may declare beside its hooks is in the docstring of `Tool`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlprof.types import Artifact, Capture, Launch, Place, Recording, Target, Window, Workers
    from rlprof_run import Run

hookspec = pluggy.HookspecMarker("rlprof")
hookimpl = pluggy.HookimplMarker("rlprof")


class Tool:
    """A plugin that records a process: torch, nsys, npu, yours.

    Its class may declare, beside its hooks:

    `Options`
        an attrs class; the config's options for this tool are structured into it, every fault is
        reported under its path. Default: no options.
    `runs_on`
        where `start` and `stop` may be called. `"thread"` (default): on the thread that is
        recorded, which nobody can cut short. `"process"`: on any thread of the process, so that a
        step stops waiting for one that hangs. `"node"`: likewise, and what is recorded is not this
        process alone. A property may answer after `configure(place="process")`.
    `claims`
        `{resource: "thread" | "process" | "device" | "node"}`: what it takes while recording, and
        of what there is one, e.g. `{"kineto": "process"}`. Two tools of one role that claim the
        same resource are refused before the run. Names of resources are yours to choose; the tool
        `torch` claims `kineto` and `cupti`.
    `lighter`
        a static method `lighter(options)`: the same options one notch cheaper, as a new value of
        `Options`, or None where nothing is cheaper. Core asks for it before a window, when the
        tool's last one was larger than what is left of `limits.bytes` or its stop took more than
        half of `stop_timeout_s`, and says so; the windows after that stay as light.
    `within`
        `{option: limit}`: options in seconds that must be less than a limit of the run, e.g.
        `{"stop_s": "stop_timeout_s"}`; what is asked and is not is a fault. Default: none.
    `sample`
        a static method `sample(rounds)`: do the work the tool records the most of, *rounds* times,
        and nothing else: open no window, never sleep. Core calls it in a process of its own that
        sees no device, bare and then in a window, to estimate what a window will cost. It chooses
        *rounds* itself, doubling it until they take 0.1 s of CPU time: let a round take
        microseconds to milliseconds.
    `leave_alone`
        a static method `leave_alone(environ)`: take out of *environ*, a dict, what would bring the
        tool into a process that is started with it: what it preloads, what it says to itself. Core
        calls it before it starts a process of its own, for exports, in a process that
        the tool records: those are nothing of the program's. Default: there is nothing.
    `cautions`
        a static method `cautions(options)`: what a user should know before the run, each a sentence
        that ends without a period: `["reports hold the whole environment; name in env what they
        may"]`. `rlprof check` and `rlprof plan` print them, a line each; they are no faults, and
        hinder nothing. Default: none.
    """

    @hookspec(firstresult=True)
    def configure(self, place: Place, target: Target, options: Any) -> Launch | None:
        """Check that *options* can work for *target*, and say what the process must be born with.

        Called twice, on different instances. With `place="launch"` before the process exists,
        perhaps on another host: be pure and cheap, import nothing heavy, return a `Launch` or
        nothing, and raise one `CaptureError` that lists all that cannot work. With
        `place="process"` inside the process, once, and only where a window is due: check that
        the Launch arrived, import and warm up, keep *options* for later; the result is ignored.
        Nothing passes from the first call to the second but the Launch.

        *options* is a value of the class's `Options`.

            @hookimpl
            def configure(self, place, options):
                if place == "process":
                    self.options = options
        """

    @hookspec(firstresult=True)
    def start(self, window: Window, target: Target, folder: Path) -> Recording | None:
        """Begin recording *window*; return when recording has begun.

        *folder* exists, is this capture's own, and lies on a disk of this host: raw data go
        there. Raise `CaptureError` to refuse: it is recorded, training and the other tools go
        on, and `stop` is still called. Return a `Recording` to be told of phases and
        mini-batches, and to say what was applied and what cannot be had.

            @hookimpl
            def start(self, folder):
                self.file = (folder / "samples.txt").open("w")
        """

    @hookspec(firstresult=True)
    def stop(self, window: Window, folder: Path) -> None:
        """End the recording and leave raw data in *folder*.

        Always safe: after a failed start, twice, without a start, and where the plugin runs on the
        `thread`, on another one too: training's own may have ended. What cannot be done there is a
        `CaptureError`, and the next window another matter. Do the least that secures the
        data, for the step waits: whatever can be done later belongs into `export`.

            @hookimpl
            def stop(self):
                if self.file:
                    self.file.close()
                    self.file = None
        """

    @hookspec(firstresult=True)
    def export(self, capture: Capture, folder: Path, out: Path) -> Sequence[Artifact] | None:
        """Turn the raw data in *folder* into artifacts in *out*; say of each if it is whole.

        Called on a new instance, in a helper process, on another host, or days later, also for
        a window that was never closed: read only *folder*, never what `start` or `stop` kept.
        Name files `capture.stem` plus a suffix, or so a folder of files that must keep names of
        their own. Paths of artifacts are relative to *out*; size
        and checksum are filled in by core. Return nothing if there is nothing: the capture then
        reads as empty. Raw data that were cut give artifacts with `status="partial"` and a note,
        or one `CaptureError`; so `stop` leaves a mark by which the whole can be told. Leave the
        raw data where they are, for the helper may die and `export` be called again; core deletes
        them once every artifact is whole.

        A `trace` artifact is gzipped chrome-trace JSON (`format="chrome-trace"`, by habit
        `.pt.trace.json.gz` or `.trace.json.gz`). Its first top-level key is `rlprof`, an object of
        `run`: `capture.run_id`; `target`, `window`: `attrs.asdict` of those; `tool`; `epoch_ns`:
        int, wall clock in ns of `ts` 0 (`ts` and `dur` are microseconds); `error_ns`: int, how far
        that may be wrong, or null.

            @hookimpl
            def export(self, capture, folder, out):
                shutil.copyfile(folder / "samples.txt", out / f"{capture.stem}.txt")
                return [Artifact(f"{capture.stem}.txt", kind="files", format="text")]
        """


class Engine:
    """A plugin that reaches a rollout engine through the engine's own interface.

    The hooks mean what they mean for a `Tool`; *handle* is what `prof.attach` was given, and None
    at launch. `configure`, `start` and `stop` are called on a thread of their own, one at a time.
    `start` and `stop` may be `async def`, and in the process `configure` may return an awaitable:
    these are awaited on the loop given to `attach`, or on one of their own. An engine that is gone
    is a `CaptureError`, raised in time: core stops waiting at the limits, and then does not use the
    plugin again.

    Its class may declare, beside its hooks, `Options`, `lighter` and `cautions` as a `Tool` may,
    and

    `runs_on`
        `"thread"`: `start` and `stop` are called on the thread whose phase it is, for an engine
        that works there itself; a property may answer after `configure(place="process")`. Default:
        on a thread of their own.
    `loop`
        the event loop the engine lives on, once `configure` is done, if the plugin can see it: core
        never waits on that loop's own thread.
    `capabilities`
        a static method `capabilities()`: what can be had of the engine that is installed here, as
        `{what: how}`, or `{what: ("warn", how)}` where that is less than one would expect, for
        `rlprof doctor`; called in a process of its own. Raise `CaptureError` if it is not.
    `misfits`
        a static method `misfits(options, tools)`: which of *options*, a value of `Options`, cannot
        work on this host, as `{option: "what is wrong; what to do"}`, or `{option: ("warn", …)}`
        where a window opens all the same, with less. *tools* are those that record inside it, with
        what is asked of them. For `rlprof doctor`, in a process of its own: heavy imports are fine.
    `who_records`
        a static method `who_records(options, tools)`: in words, what records the engine, for
        `rlprof check` and `rlprof plan`. Default: the tools inside it, if it `drives`.
    `counters`
        a method `counters(self, handle)`: the current state of the engine, as a mapping of numbers
        whose names end in their unit: `{"requests_running": 12, "requests_waiting": 3,
        "kv_cache_use": 0.71, "batch_size": 12}`; `{}` while nothing is known. Core makes a separate
        instance for it, neither configured nor started, and calls it on a thread of its own from
        `prof.attach` to `close`: once a second, and ten times while a window is open. Return what
        the engine keeps anyway, and never wait for the engine, its loop or the network. If you
        must ask, do so on your own thread and return the last answer. An exception is reported
        once, and ends the calls. Default: no counters.
    `drives`
        True: the tools of its role record inside the engine's own processes. Core checks their
        options and merges their Launches into the engine's; the plugin carries orders to those
        processes, which `workers` writes for it (`rlprof.Order` reads and obeys them there).
    """

    @hookspec(firstresult=True)
    def configure(
        self, place: Place, target: Target, options: Any, handle: Any, workers: Workers
    ) -> Launch | None:
        """Check *options*; at launch return the engine arguments the engine must be born with.

        In the process see that it was born so: raise `CaptureError` if it has no profiler. At
        launch *handle* is None, and *workers* has only `tools`.

            @hookimpl
            def configure(self, place):
                return Launch(engine_args={"profiler": True}) if place == "launch" else None
        """

    @hookspec(firstresult=True)
    def start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> Recording | None:
        """Ask the engine to begin recording; return when it has answered.

        *folder* lies on the host of the caller: an engine elsewhere writes where it can, and
        `stop` fetches it.

            @hookimpl
            async def start(self, folder, handle):
                await handle.start_profile(str(folder))
        """

    @hookspec(firstresult=True)
    def stop(self, window: Window, folder: Path, handle: Any, workers: Workers) -> None:
        """Ask the engine to stop; "not in progress" is success.

        What the engine records for somebody else is left alone.

            @hookimpl
            async def stop(self, handle):
                if await handle.is_profiling():
                    await handle.stop_profile()
        """

    @hookspec(firstresult=True)
    def export(self, capture: Capture, folder: Path, out: Path) -> Sequence[Artifact] | None:
        """Turn what the engine left in *folder* into artifacts in *out*; the engine is gone.

        Where each of its processes left a trace, the `target` of one may say whose it is: by
        `worker`, and by `coordinates` beside those that `capture.target` has.
        """


class Exporter:
    """A plugin that turns a recorded run into something to look at: a timeline, a report.

    Its class may declare, beside its hooks:

    `arguments`
        a static method `arguments(group)`: what `rlprof export` takes for this exporter, added to
        *group*, an argparse argument group: `group.add_argument("--depth", type=int, default=3)`.
        Each has a flag that no other exporter is likely to have, and may be left out. It imports
        nothing heavy: `rlprof export --help` asks every exporter. Default: none.
    """

    @hookspec(firstresult=True)
    def export(self, run: Run, out: Path, options: Mapping[str, Any]) -> Sequence[Path] | None:
        r"""Write what *run* shows into the folder *out*, which exists; return the files written.

        Called by `rlprof export RUN --to NAME`. Look at the run through *run* alone: it may be a
        part of one, and `run.selection` says which; its captures, processes and spans are of that
        part already, only what lies in a trace before or after the time selected is for you to
        leave out. A file of the run that cannot be read is left out and said so, never a reason to
        fail. *options* has a value for each argument of `arguments`, as argparse names it: what
        was typed, or its default.

            @hookimpl
            def export(self, run, out):
                page = out / "captures.txt"
                page.write_text("\n".join(str(c.window.id) for c in run.captures))
                return [page]
        """

    @hookspec(firstresult=True)
    def export_files(
        self, files: Sequence[Path], out: Path, options: Mapping[str, Any]
    ) -> Sequence[Path] | None:
        """Write what *files* show into *out*, which exists; return the files written.

        Called by `rlprof export PATH --to NAME` where PATH is no run, but a file, or a folder with
        files below it that may be traces by their names: `.json`, `.gz`, `.trace`, `.pftrace`.
        rlprof made none of them, and they come sorted. What is no trace, or is damaged, is left
        out and said so. Optional: without it, an exporter reads runs alone.
        """


class Listener:
    """A plugin that hears what happens in a session: to post a link, to ask for a recording.

    The config names it under `listeners`. One instance hears one session, on a thread of its own,
    in order, at most about a second late. What it raises is logged, and what it does slowly delays
    nobody: if it falls 10,000 events behind, it misses events, and the manifest says so. When the
    session closes, core waits 5 s for it to finish.

    *session* is the session itself. Beside what a training loop uses it has `config`, `target`,
    `tracks` (what is recorded: the process and its attached engines), `ask(...)`, which has some of
    them record their next steps, `log(message)`, and `write(event, **fields)`, which adds a line to
    the manifest.

    All hooks are optional. Processes that follow a fleet's driver have no listeners: the driver's
    hear of their windows.
    """

    @hookspec
    def session_opened(self, session: Any) -> None:
        """Hear that *session* is open; the first hook, for which `rlprof.open` waits up to 1 s."""

    @hookspec
    def step_ended(
        self, session: Any, step: int, seconds: float, windows: int, phases: Sequence[str]
    ) -> None:
        """Hear that *step* took *seconds* and entered *phases*.

        *windows*: of how many targets something was recorded in it, which takes time.
        """

    @hookspec
    def window_opened(
        self, session: Any, window: Window, target: Target, tools: Sequence[str]
    ) -> None:
        """Hear that *tools* record *window* of *target*."""

    @hookspec
    def window_closed(
        self, session: Any, window: Window, target: Target, tools: Sequence[str], reason: str
    ) -> None:
        """Hear that they do so no longer; `"end"` is the usual *reason*. Exports come later."""

    @hookspec
    def tick(self, session: Any) -> None:
        """Look around; called about once a second, but not while an earlier hook still runs."""

    @hookspec
    def session_closing(self, session: Any) -> None:
        """Hear that *session* begins to close; windows that are open close after this."""


KINDS = {"tool": Tool, "engine": Engine, "exporter": Exporter, "listener": Listener}
"""Kind of plugin → its spec."""
