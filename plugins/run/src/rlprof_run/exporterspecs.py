"""The contract of exporters, which show a recorded run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.hookspecs import hookspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlprof_run import Run


class Exporter:
    """A plugin that turns a recorded run into a view of it: a timeline, a report."""

    @hookspec(firstresult=True)
    def render(self, run: Run, out: Path, options: Mapping[str, Any]) -> Sequence[Path] | None:
        r"""Write a view of *run* into the folder *out*, which exists; return the files written.

        `rlprof export RUN --to NAME` calls it. Read the run only through *run*: it may be a part of
        a run, and `run.selection` says which. Its captures, processes and spans belong to that part
        already; you only need to drop events of a trace before or after the selected time. Skip a
        file of the run that cannot be read, and say so: never fail because of it. *options* are
        those of the command for all exporters: `align`, which is None if it was not typed.

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
        """Write a view of *files* into *out*, which exists; return the files written.

        `rlprof export PATH --to NAME` calls it if PATH is not a run, but a file, or a folder with
        files below it that may be traces by their names: `.json`, `.gz`, `.trace`, `.pftrace`.
        The files come from other profilers, and they are sorted. Skip files that are damaged or not
        traces, and say so. Optional: without it, an exporter reads only runs.
        """
