"""The tool `torch_memory`: a snapshot of the caching allocator with the history of a window.

History is on only while a window is open, and on this process only: it costs on every allocation.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact, CaptureError, hookimpl
from rlprof_torch._options import MemoryOptions, lighter_memory

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Capture
    from rlprof.types import Place

_SNAPSHOT = "snapshot.pickle"
_OOM = "oom-{}.pickle"
_END = "memory.json"
"""Written last: the size of each snapshot, which shows whether a snapshot is whole or cut."""
_MOST_OOM = 3
"""Code that catches an out-of-memory error tends to meet it again at once."""


@attrs.define(eq=False)  # identity: pluggy compares plugins
class TorchMemory:
    """Record allocations on the device; the snapshot opens in pytorch.org/memory_viz."""

    Options = MemoryOptions
    claims = {"cuda_memory_history": "process"}  # noqa: RUF012 -- read, never written
    runs_on = "process"
    lighter = staticmethod(hookimpl(lighter_memory))

    options: MemoryOptions = attrs.field(factory=MemoryOptions)
    _folder: Path | None = None
    _watches_oom: bool = False
    _oom_count: int = 0

    @hookimpl
    def configure(self, place: Place, options: MemoryOptions) -> None:
        """Check that there is a device whose allocator can be recorded."""
        self.options = options
        if place == "process":
            _allocator()

    @hookimpl
    def start(self, folder: Path) -> None:
        """Switch the history on."""
        memory = _allocator()
        if self._folder is not None:
            raise CaptureError("a window is open already")
        if self.options.on_oom and not self._watches_oom:
            import torch

            torch._C._cuda_attach_out_of_memory_observer(self._on_oom)
            self._watches_oom = True  # observers cannot be taken off; ours looks at the window
        memory._record_memory_history(
            enabled="all",
            context="all" if self.options.stacks else None,
            stacks="python",
            max_entries=self.options.max_entries,
            clear_history=True,
        )
        self._folder, self._oom_count = folder, 0

    @hookimpl
    def stop(self) -> None:
        """Write the snapshot and switch the history off."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        memory = _allocator()
        try:
            memory._dump_snapshot(str(folder / _SNAPSHOT))
        finally:
            memory._record_memory_history(enabled=None)
        sizes = {file.name: file.stat().st_size for file in folder.glob("*.pickle")}
        (folder / _END).write_text(json.dumps({"sizes": sizes}))

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Name the snapshots; they are pickles and are not opened, not even to be checked."""
        try:
            sizes = json.loads((folder / _END).read_bytes())["sizes"]
        except (OSError, ValueError, KeyError, TypeError):
            sizes = {}
        made = []
        for raw in sorted(folder.glob("*.pickle")):
            suffix = "" if raw.name == _SNAPSHOT else f"_{raw.stem}"
            name = f"{capture.stem}{suffix}.memory.pickle"
            shutil.copyfile(raw, out / name)
            is_whole = sizes.get(raw.name) == raw.stat().st_size
            remarks = ["written when an allocation failed"] if suffix else []
            remarks += [] if is_whole else ["the process ended while it was written; it may be cut"]
            made.append(
                Artifact(
                    path=name,
                    kind="files",
                    format="pickle",
                    status="whole" if is_whole else "partial",
                    note="; ".join(remarks),
                )
            )
        if not made:
            raise CaptureError("torch left no snapshot")
        return made

    def _on_oom(self, device: int, allocated: int, total: int, free: int) -> None:  # noqa: ARG002 -- torch's signature
        """Write a snapshot before the error is raised; on the failing thread, at most a few."""
        if self._folder is None or self._oom_count >= _MOST_OOM:
            return
        self._oom_count += 1
        _allocator()._dump_snapshot(str(self._folder / _OOM.format(self._oom_count)))


def _allocator() -> Any:
    """Return the module that records allocations; raise CaptureError if there is none."""
    try:
        import torch
    except ImportError as exc:
        raise CaptureError(f"torch cannot be imported: {exc}; install torch") from exc
    if not torch.cuda.is_available():
        raise CaptureError(
            f"torch {torch.__version__} sees no CUDA device here, and only its allocator keeps a "
            "history; leave torch_memory out of this role"
        )
    return torch.cuda.memory
