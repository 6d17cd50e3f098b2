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

`rlprof_run.exporterspecs` has the hooks of exporters. A listener records nothing and hears of
events: `listenerspecs.py` has its hooks.

A plugin is a class without constructor arguments whose hooks carry `@rlprof.hookimpl`. A hook
takes only the arguments it uses, by name. Core makes one instance per target and tool and calls
each separately: no plugin starts, stops or delays another.

A class may also declare attributes: the docstring of `Recorder` names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlprof.answers import Advice, Ready
    from rlprof.config._values import Limits
    from rlprof.types import Artifact, Capture, Launch, Place, Recording, Target, Window, Workers

hookspec = pluggy.HookspecMarker("rlprof")
hookimpl = pluggy.HookimplMarker("rlprof")


class Recorder:
    """A plugin that records: a tool records a process, an engine records a rollout engine.

    Both have the same hooks. Hooks of an engine also get *handle*, the object passed to
    `prof.attach`, and *workers*, which describes the processes of the engine. Core calls
    `configure`, `start` and `stop` of an engine on a separate thread, one at a time. `start` and
    `stop` may be `async def`, and in the process `configure` may return an awaitable: core awaits
    these on the loop given to `attach`, or on a loop it makes. Raise a `CaptureError` if the engine
    is gone. Core stops waiting at the limits, and then does not use the plugin again.

    The class may also declare:

    `Options`
        an attrs class. Core structures the config's options for this plugin into it, and reports
        every fault under its path. Default: no options.
    `runs_on`
        where core may call `start` and `stop` of a tool. `"thread"` (default): on the recorded
        thread, where core cannot cut them short. `"process"`: on any thread of the process, so that
        a step does not wait for a hanging hook. `"node"`: likewise, and the tool records more than
        this process. `configure` may return another place, in a `Ready`.
    `claims`
        `{resource: "thread" | "process" | "device" | "node"}`: exclusive resources that the tool
        uses while it records, e.g. `{"kineto": "process"}`. Core refuses two tools of one role that
        claim the same resource, before the run. You choose the names of resources; the tool `torch`
        claims `kineto` and `cupti`.
    `sample`
        a static method `sample(rounds)`: do the work of which the tool records the most, *rounds*
        times, and nothing else: open no window, never sleep. Core calls it in a separate process
        that sees no device, first bare and then in a window, to estimate the cost of a window. Core
        doubles *rounds* until they take 0.1 s of CPU time: let a round take microseconds to
        milliseconds.
    `leave_alone`
        a static method `leave_alone(environ)`: remove from *environ*, a dict, the variables that
        would load the tool into a new process, such as preloaded libraries and the tool's settings.
        Core calls it in a recorded process before it starts an export process: exports are not part
        of the program. Default: it removes nothing.
    `drives`
        True: the tools of the engine's role record inside the processes of the engine. Core checks
        their options and merges their Launches into that of the engine. `workers` writes orders,
        and the plugin carries them to those processes, where `rlprof.Order` reads and obeys them.
    `counters`
        a method `counters(self, handle)` of an engine: its current state, as a mapping of numbers
        whose names end in their unit: `{"requests_running": 12, "requests_waiting": 3,
        "kv_cache_use": 0.71, "batch_size": 12}`; `{}` while nothing is known. Core makes a separate
        instance for it, neither configured nor started. It calls the method on a separate thread
        from `prof.attach` to `close`: once a second, and ten times while a window is open. Return
        values that the engine keeps anyway, and never wait for the engine, its loop or the network.
        If you must ask, do so on your own thread and return the last answer. An exception is
        reported once, and ends the calls. Default: no counters.
    """

    @hookspec(firstresult=True)
    def configure(
        self, place: Place, target: Target, options: Any, handle: Any, workers: Workers
    ) -> Launch | Ready | None:
        """Check that *options* can work for *target*, and return what the process is born with.

        Core calls it twice, on different instances. `place="launch"` is before the process exists,
        perhaps on another host: be pure and cheap, import nothing heavy, return a `Launch` or
        nothing, and raise one `CaptureError` that lists all faults. `place="process"` is inside the
        process, once, and only if a window is due: check that the Launch arrived, import and warm
        up, keep *options* for later. Return nothing, or a `Ready` that says where `start` and
        `stop` run. Only the Launch passes from the first call to the second.

        *options* is an instance of the class's `Options`. At launch, *handle* is None, and
        *workers* has only `tools`.

            @hookimpl
            def configure(self, place, options):
                if place == "process":
                    self.options = options

        The plugin of an engine returns the engine's arguments at launch:

            @hookimpl
            def configure(self, place):
                return Launch(engine_args={"profiler": True}) if place == "launch" else None
        """

    @hookspec(firstresult=True)
    def start(
        self, window: Window, target: Target, folder: Path, handle: Any, workers: Workers
    ) -> Recording | None:
        """Begin recording *window*; return when recording has begun.

        *folder* exists, belongs to this capture, and is on a disk of this host: raw data goes
        there. An engine on another host writes where it can, and `stop` fetches the data. Raise
        `CaptureError` to refuse: the manifest notes it, training and the other tools continue, and
        core still calls `stop`. Return a `Recording` to hear of phases and mini-batches, and to
        report the options that were applied and those that are unsupported.

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

        It must always be safe to call: after a failed start, twice, without a start. If the plugin
        runs on the `thread`, it may also come on another thread, because training's thread may have
        ended; raise `CaptureError` if that cannot work, and the next window can. Do the least that
        secures the data, because the step waits; the rest belongs in `export`.

            @hookimpl
            def stop(self):
                if self.file:
                    self.file.close()
                    self.file = None

        For an engine, "not in progress" is success. Leave a recording of somebody else alone.

            @hookimpl
            async def stop(self, handle):
                if await handle.is_profiling():
                    await handle.stop_profile()
        """

    @hookspec(firstresult=True)
    def export(self, capture: Capture, folder: Path, out: Path) -> Sequence[Artifact] | None:
        """Turn the raw data in *folder* into artifacts in *out*, each marked whole or partial.

        Core calls it on a new instance, in a helper process, on another host, or days later, also
        for a window that was never closed: read only *folder*, never state of `start` or `stop`.
        Name files `capture.stem` plus a suffix; if files must keep other names, name their folder
        so. Paths of artifacts are relative to *out*; core fills in size and checksum. Return
        nothing if there is nothing: the capture then reads as empty. Return artifacts with
        `status="partial"` and a note for raw data that was cut, or raise one `CaptureError`; let
        `stop` leave a mark that shows that the data is whole. Leave the raw data in place, because
        the helper may die and core may call `export` again; core deletes it once every artifact is
        whole.

        If each process of an engine left a trace, the `target` of an artifact may name the process:
        by `worker`, and by `coordinates` in addition to those of `capture.target`.

        A `trace` artifact is gzipped chrome-trace JSON (`format="chrome-trace"`, by habit
        `.pt.trace.json.gz` or `.trace.json.gz`). Its first top-level key is `rlprof`, an object of
        `run`: `capture.run_id`; `target`, `window`: `attrs.asdict` of those; `tool`; `epoch_ns`:
        int, wall clock in ns of `ts` 0 (`ts` and `dur` are microseconds); `error_ns`: int, the
        error of that, or null.

            @hookimpl
            def export(self, capture, folder, out):
                shutil.copyfile(folder / "samples.txt", out / f"{capture.stem}.txt")
                return [Artifact(f"{capture.stem}.txt", kind="files", format="text")]
        """

    @hookspec(firstresult=True)
    def lighter(self, options: Any) -> Any:
        """Return the same *options* one notch cheaper, or None if nothing is cheaper.

        Core asks before a window if the last one was larger than the rest of `limits.bytes`, or if
        its stop took more than half of `stop_timeout_s`. The manifest notes it, and later windows
        stay as light. Optional.

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
        """Return what a user should know before the run; optional.

        Core asks whenever it checks a config: be as pure and cheap as `configure` at launch.
        *limits* are those of the run. *tools* are the tools that record inside an engine, with
        their options in the config. `rlprof check` and `rlprof plan` print each `Advice`, and an
        `Advice` with `level="fault"` refuses the config.

        With *on_host*, `rlprof doctor` asks, in a separate process on the host of the run: also
        report what cannot work on this host; heavy imports are fine. *options* is None if doctor
        asks without a config what the installed engine can do. Raise `CaptureError` if there is no
        such engine.

            @hookimpl
            def advise(self, options, limits):
                if options.stop_s >= limits.stop_timeout_s:
                    words = f"must be less than limits.stop_timeout_s, {limits.stop_timeout_s:g}"
                    return [Advice(words, about="stop_s", level="fault")]
        """
