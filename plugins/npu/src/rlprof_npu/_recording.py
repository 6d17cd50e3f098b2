"""One window: the profiler, the ranges of its phases, and the notes that `export` will need."""

from __future__ import annotations

import inspect
import json
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_npu._forks import guard_forks
from rlprof_npu._left_open import end_what_was_left
from rlprof_npu._library import Overheard, experimental, forget, was_alone
from rlprof_npu._options import DOMAIN
from rlprof_npu._raw import CLOCK_MARK, NOTES, find_folder, missing_in, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlprof import Target, Window
    from rlprof_npu._options import NpuOptions

_PAIRS = 5
"""The wall clock and the monotonic one are read together that often; the closest pair counts."""
_UNSAID = str.maketrans({'"': "'", "\\": "/"})


def range_name(name: str) -> str:
    """Make *name* safe for CANN's own writers: ASCII on one line, without quotes."""
    text = name.translate(_UNSAID).encode("ascii", "replace").decode("ascii")
    return "".join(c if c.isprintable() else " " for c in text)[:200].strip() or "unnamed"


def clock_pair() -> list[int]:
    """Read the wall clock and the monotonic clock, as near to each other as can be."""
    found = []
    for _ in range(_PAIRS):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        found.append((after - before, real, (before + after) // 2))
    return list(min(found)[1:])


class _Once:
    """The schedule: the window is one step, which is recorded and saved, and then nothing is.

    So the library has a step to number kernels by, and ends without a complaint. It writes what a
    schedule holds into its files, and this one holds nothing to write.
    """

    __slots__ = ("_actions", "_is_asked")

    def __init__(self, actions: Any) -> None:
        self._actions = actions
        self._is_asked = False

    def __call__(self, _: int) -> Any:
        is_first, self._is_asked = not self._is_asked, True
        return self._actions.RECORD_AND_SAVE if is_first else self._actions.NONE


class NpuRecording:
    """One window, begun and ended on one thread."""

    def __init__(
        self, torch: Any, torch_npu: Any, options: NpuOptions, target: Target, window: Window
    ) -> None:
        self._torch = torch
        self._library = torch_npu
        self._options = options
        self._window = window
        self._rank = target.rank
        self._profile: Any = None
        self._folder = Path()
        self._thread = threading.get_ident()
        self._ranges: dict[int, list[Callable[[], None]]] = {}
        self._marks: list[list[int]] = []
        self._silent = 0
        self._has_cpu = "cpu" in options.activities
        self._fields, self.unsupported = experimental(torch_npu.profiler, options)
        self._mark_range = self._choose_marks()
        self.applied: dict[str, Any] = {
            "activities": list(options.activities),
            "level": options.level,
            "aic_metrics": options.metrics,
            "mstx": "mstx" in self._fields or "msprof_tx" in self._fields,
            "phases": self._mark_range.__name__.removeprefix("_as_"),
            "torch_npu": str(torch_npu.__version__),
        }
        is_discrete = window.phase is not None
        if options.discrete not in (None, is_discrete):
            mode = "discrete" if options.discrete else "continuous"
            self.unsupported["discrete"] = f"windows are made by the config; set mode: {mode}"
        self._notes: dict[str, Any] = {}

    def _choose_marks(self) -> Callable[[str], Callable[[], None]]:
        if "npu" in self._options.activities and self._options.has_marks:
            return self._as_mstx
        return self._as_record_function if self._has_cpu else self._as_nothing

    def begin(self, folder: Path) -> None:
        """Start; recording has begun when this returns."""
        profiler, options = self._library.profiler, self._options
        # What a killed process needs to be read at all: the library writes its own at the end.
        self._folder = folder
        self._notes = {"rank": self._rank, "applied": self.applied, "marks": self._marks}
        self._notes |= {"analysis": options.analysis, "timeout_s": options.analysis_timeout_s}
        self._notes |= {"export_type": list(options.export_type), "clock": clock_pair()}
        self._write_notes()
        activities = [getattr(profiler.ProfilerActivity, one.upper()) for one in options.activities]
        # Where it writes is the process' own, and set when the handler is made.
        handler = profiler.tensorboard_trace_handler(str(folder), analyse_flag=False)
        common = {
            "record_shapes": "shapes" in options.contents,
            "profile_memory": "memory" in options.contents,
            "with_stack": "stack" in options.contents,
            "with_modules": "module" in options.contents,
        }
        self._profile = profiler.profile(
            activities=activities,
            schedule=_Once(profiler.ProfilerAction),
            on_trace_ready=handler,
            experimental_config=profiler._ExperimentalConfig(**self._fields),
            **common,
        )
        guard_forks(self._profile)
        self._profile.step_num = self._window.start_step
        self._note_config(activities, common)
        with Overheard() as heard:
            self._profile.start()
        self._note_start(heard.errors)
        if self._has_cpu:
            with self._torch.profiler.record_function("rlprof.warmup"):
                pass  # the first range is slow, a mark should be tight
        self._mark()

    def _note_config(self, activities: list[Any], common: Mapping[str, bool]) -> None:
        """Note the config as the library will write it at the end, if it comes to that."""
        config = getattr(getattr(self._profile, "prof_if", None), "experimental_config", None)
        self._notes["config"] = {
            "common_config": {"activities": [str(one) for one in activities], **common},
            "experimental_config": _plain(getattr(config, "__dict__", {})),
        }
        self._write_notes()

    def _note_start(self, errors: list[str]) -> None:
        """Note where its clocks begin; raise CaptureError if it did not begin, for it does not."""
        state = self._profile.prof_if
        made = find_folder(self._folder)
        if errors or made is None or not str(getattr(state, "prof_path", "")):
            self.abandon()
            why = errors[0] if errors else "it left no folder, and did not say why"
            raise CaptureError(f"torch_npu did not start to record: {why}")
        self._notes["start_info"] = {
            "syscnt_enable": bool(getattr(state, "syscnt_enable", False)),
            "freq": getattr(state, "freq", 100),
            "start_cnt": getattr(state, "start_cnt", 0),
            "start_monotonic": getattr(state, "start_monotonic", 0),
        }
        self._write_notes()

    def abandon(self) -> None:
        """End a profiler that has not begun, or not on this thread."""
        profile, self._profile = self._profile, None
        if profile is not None:
            with suppress(Exception):
                profile.stop()
        forget(self._folder)

    def end(self) -> None:
        """Stop; the raw data and what the library says of them are on disk when this returns."""
        profile, self._profile = self._profile, None
        if profile is None:
            return
        is_shared = not was_alone(self._folder)
        with Overheard() as heard:
            try:
                self._close_ranges()
                self._mark()
            finally:
                profile.step()  # ends the only step there is, and saves it
                profile.stop()
                if self.is_elsewhere:
                    end_what_was_left(profile.prof_if, self._options)
        forget(self._folder)
        made = find_folder(self._folder)
        missing = missing_in(made, self._options.activities)
        missing += [f"torch_npu says: {error}" for error in heard.errors]
        if is_shared:
            missing.append(
                "training used a profiler of torch_npu in the window, and two at once lose events"
            )
        if self.is_elsewhere and self._has_cpu:
            missing.append(
                "stopped on another thread than it began on, which had ended or did not come by"
            )
        said = [f"mstx recorded none of {self._silent} phases"] if self._silent else []
        if unconfirmed := ", ".join(self._options.unconfirmed):
            said.append(f"torch_npu does not say whether CANN could record {unconfirmed}")
        self._notes |= {"missing": missing, "said": said, "end": clock_pair()}
        self._notes["sizes"] = {} if made is None else sizes_of(made)
        self._write_notes()
        if made is None:
            raise CaptureError(missing[0])

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is another thread than the one that records."""
        return threading.get_ident() != self._thread

    def push(self, name: str, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 -- the name must not vary
        """Open a range."""
        close = self._mark_range(range_name(name))
        self._ranges.setdefault(threading.get_ident(), []).append(close)

    def pop(self) -> None:
        """Close the range this thread opened last."""
        stack = self._ranges.get(threading.get_ident())
        if stack:
            stack.pop()()

    def _close_ranges(self) -> None:
        """Close what is open, on all threads: mstx knows no end of a window."""
        ranges, self._ranges = self._ranges, {}
        for stack in ranges.values():
            while stack:
                stack.pop()()

    def _as_mstx(self, text: str) -> Callable[[], None]:
        mstx = self._library.npu.mstx
        if "domain" in inspect.signature(mstx.range_start).parameters:
            own: dict[str, str] = {"domain": DOMAIN}
        else:  # up to torch_npu 2.5
            own = {}
        number = mstx.range_start(text, **own)
        self._silent += not number
        return lambda: mstx.range_end(number, **own)

    def _as_record_function(self, text: str) -> Callable[[], None]:
        scope = self._torch.profiler.record_function(text)
        scope.__enter__()
        return lambda: scope.__exit__(None, None, None)

    def _as_nothing(self, _: str) -> Callable[[], None]:
        return lambda: None

    def _mark(self) -> None:
        """Leave a short range and the wall clock around it: the proof of the trace's clock."""
        if not self._has_cpu or self.is_elsewhere:
            return
        before = time.time_ns()
        with self._torch.profiler.record_function(CLOCK_MARK):
            pass
        self._marks.append([before, time.time_ns()])

    def _write_notes(self) -> None:
        draft = self._folder / f"{NOTES}.tmp"
        try:
            draft.write_text(json.dumps(self._notes))
            draft.rename(self._folder / NOTES)
        except OSError as exc:
            raise CaptureError(f"{self._folder} takes no notes: {exc.strerror or exc}") from exc


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of *found* what JSON can hold."""
    kept = {}
    for name, value in found.items():
        with suppress(TypeError, ValueError):
            kept[name] = json.loads(json.dumps(value))
    return kept
