"""The contract of every plugin; the docstrings are the law.

| hook        | Tool | Engine | Exporter | fires                                              |
|-------------|------|--------|----------|----------------------------------------------------|
| `configure` | yes  | yes    |          | at launch, and again inside the process            |
| `start`     | yes  | yes    |          | a window opens                                     |
| `stop`      | yes  | yes    |          | it closes, however it closes                       |
| `export`    | yes  | yes    |          | after stop, in another process, perhaps days later |
| `lighter`   | may  | may    |          | the last window was too large, or its stop too slow |
| `advise`    | may  | may    |          | before the run                                     |
| `render`    |      |        | yes      | `rlprof export RUN --to NAME`                      |

An exporter may have `render_files`, too, for files that rlprof did not make. A listener records
nothing and hears what happens: `listenerspecs.py` has its hooks.

A plugin is a class without constructor arguments whose hooks carry `@rlprof.hookimpl`. A hook
takes only the arguments it uses, by name. Core makes one instance per target and tool and calls
it alone: what one plugin does never starts, stops or delays another.

A class may declare attributes beside its hooks: the docstring of `Recorder` names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlprof.answers import Advice, Ready
    from rlprof.config._values import Limits
    from rlprof.types import (
        Artifact,
        Capture,
        Launch,
        Place,
        Recording,
        Target,
        Window,
        Workers,
    )
    from rlprof_run import Run

hookspec = pluggy.HookspecMarker("rlprof")
hookimpl = pluggy.HookimplMarker("rlprof")


class Recorder:
    """A plugin that records: a tool records a process, an engine records a rollout engine.

    Both have the same hooks. An engine's hooks are also given *handle*, which is what `prof.attach`
    was given, and *workers*, which describes the engine's own processes. Core calls `configure`,
    `start` and `stop` of an engine on a thread of their own, one at a time. `start` and `stop` may
    be `async def`, and in the process `configure` may return an awaitable: core awaits these on the
    loop given to `attach`, or on one of their own. An engine that is gone is a `CaptureError`. Core
    stops waiting at the limits, and then does not use the plugin again.

    Its class may declare, beside its hooks:

    `Options`
        an attrs class. Core structures the config's options for this plugin into it, and reports
        every fault under its path. Default: no options.
    `runs_on`
        where core may call `start` and `stop` of a tool. `"thread"` (default): on the thread that
        is recorded, which nobody can cut short. `"process"`: on any thread of the process, so that
        a step stops waiting for one that hangs. `"node"`: likewise, and what is recorded is not
        this process alone. `configure` may answer another place, with a `Ready`.
    `claims`
        `{resource: "thread" | "process" | "device" | "node"}`: what a tool takes while it records,
        and of what there is one, e.g. `{"kineto": "process"}`. Two tools of one role that claim the
        same resource are refused before the run. Names of resources are yours to choose; the tool
        `torch` claims `kineto` and `cupti`.
    `sample`
        a static method `sample(rounds)`: do the work the tool records the most of, *rounds* times,
        and nothing else: open no window, never sleep. Core calls it in a process of its own that
        sees no device, bare and then in a window, to estimate what a window will cost. It chooses
        *rounds* itself, doubling it until they take 0.1 s of CPU time: let a round take
        microseconds to milliseconds.
    `leave_alone`
        a static method `leave_alone(environ)`: take out of *environ*, a dict, what would bring the
        tool into a process that is started with it: what it preloads, what it says to itself. Core
        calls it in a process that the tool records, before it starts an export process: exports are
        no part of the program. Default: it takes nothing out.
    `drives`
        True: the tools of the engine's role record inside the engine's own processes. Core checks
        their options and merges their Launches into the engine's. The plugin carries orders to
        those processes, which `workers` writes for it (`rlprof.Order` reads and obeys them there).
    `counters`
        a method `counters(self, handle)` of an engine: its current state, as a mapping of numbers
        whose names end in their unit: `{"requests_running": 12, "requests_waiting": 3,
        "kv_cache_use": 0.71, "batch_size": 12}`; `{}` while nothing is known. Core makes a separate
        instance for it, neither configured nor started, and calls it on a thread of its own from
        `prof.attach` to `close`: once a second, and ten times while a window is open. Return what
        the engine keeps anyway, and never wait for the engine, its loop or the network. If you
        must ask, do so on your own thread and return the last answer. An exception is reported
        once, and ends the calls. Default: no counters.
    """

    @hookspec(firstresult=True)
    def configure(
        self, place: Place, target: Target, options: Any, handle: Any, workers: Workers
    ) -> Launch | Ready | None:
        """Check that *options* can work for *target*, and say what the process must be born with.

        Called twice, on different instances. With `place="launch"` before the process exists,
        perhaps on another host: be pure and cheap, import nothing heavy, return a `Launch` or
        nothing, and raise one `CaptureError` that lists all that cannot work. With
        `place="process"` inside the process, once, and only where a window is due: check that
        the Launch arrived, import and warm up, keep *options* for later. Return nothing, or a
        `Ready` that says where `start` and `stop` run. Nothing passes from the first call to the
        second but the Launch.

        *options* is a value of the class's `Options`. At launch *handle* is None, and *workers* has
        only `tools`.

            @hookimpl
            def configure(self, place, options):
                if place == "process":
                    self.options = options

        An engine says at launch which arguments the engine must be born with:

            @hookimpl
            def configure(self, place):
                return Launch(engine_args={"profiler": True}) if place == "launch" else None
        """

    @hookspec(firstresult=True)
    def start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> Recording | None:
        """Begin recording *window*; return when recording has begun.

        *folder* exists, is this capture's own, and lies on a disk of this host: raw data go
        there. An engine on another host writes where it can, and `stop` fetches it. Raise
        `CaptureError` to refuse: it is recorded, training and the other tools go on, and `stop` is
        still called. Return a `Recording` to hear of phases and mini-batches, and to say what was
        applied and what cannot be had.

            @hookimpl
            def start(self, folder):
                self.file = (folder / "samples.txt").open("w")

            @hookimpl
            async def start(self, folder, handle):
                await handle.start_profile(str(folder))
        """

    @hookspec(firstresult=True)
    def stop(self, window: Window, folder: Path, handle: Any, workers: Workers) -> None:
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

        For an engine, "not in progress" is success. What it records for somebody else is left
        alone.

            @hookimpl
            async def stop(self, handle):
                if await handle.is_profiling():
                    await handle.stop_profile()
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

        Where each process of an engine left a trace, the `target` of an artifact may say whose it
        is: by `worker`, and by `coordinates` beside those that `capture.target` has.

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

    @hookspec(firstresult=True)
    def lighter(self, options: Any) -> Any:
        """Return the same *options* one notch cheaper, or None where nothing is cheaper.

        Core asks before a window, when the last one was larger than what is left of `limits.bytes`
        or its stop took more than half of `stop_timeout_s`. The manifest says so, and the windows
        after it stay as light. Optional.

            @hookimpl
            def lighter(self, options):
                return attrs.evolve(options, hz=options.hz // 2) if options.hz >= 10 else None
        """

    @hookspec(firstresult=True)
    def advise(
        self,
        options: Any,
        limits: Limits,
        tools: Mapping[str, Mapping[str, Any]],
        on_host: bool,  # noqa: FBT001 -- core names it
    ) -> Sequence[Advice] | None:
        """Say what a user should know before the run; optional.

        Core asks whenever it checks a config: be as pure and cheap as `configure` at launch.
        *limits* are the run's. *tools* are those that record inside an engine, with the options the
        config gives them. `rlprof check` and `rlprof plan` print each `Advice`, and one with
        `level="fault"` refuses the config.

        With *on_host*, `rlprof doctor` asks, in a process of its own on the host of the run: say
        then also what cannot work on this host; heavy imports are fine. *options* is None where it
        asks without a config what the installed engine can do. Raise `CaptureError` if there is no
        such engine.

            @hookimpl
            def advise(self, options, limits):
                if options.stop_s >= limits.stop_timeout_s:
                    words = f"must be less than limits.stop_timeout_s, {limits.stop_timeout_s:g}"
                    return [Advice(words, about="stop_s", level="fault")]
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
    def render(self, run: Run, out: Path, options: Mapping[str, Any]) -> Sequence[Path] | None:
        r"""Write what *run* shows into the folder *out*, which exists; return the files written.

        Called by `rlprof export RUN --to NAME`. Look at the run through *run* alone: it may be a
        part of one, and `run.selection` says which; its captures, processes and spans are of that
        part already, only what lies in a trace before or after the time selected is for you to
        leave out. A file of the run that cannot be read is left out and said so, never a reason to
        fail. *options* has a value for each argument of `arguments`, as argparse names it: what
        was typed, or its default.

            @hookimpl
            def render(self, run, out):
                page = out / "captures.txt"
                page.write_text("\n".join(str(c.window.id) for c in run.captures))
                return [page]
        """

    @hookspec(firstresult=True)
    def render_files(
        self, files: Sequence[Path], out: Path, options: Mapping[str, Any]
    ) -> Sequence[Path] | None:
        """Write what *files* show into *out*, which exists; return the files written.

        Called by `rlprof export PATH --to NAME` where PATH is no run, but a file, or a folder with
        files below it that may be traces by their names: `.json`, `.gz`, `.trace`, `.pftrace`.
        rlprof made none of them, and they come sorted. What is no trace, or is damaged, is left
        out and said so. Optional: without it, an exporter reads runs alone.
        """
