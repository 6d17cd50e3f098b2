"""Ways to merge the traces of N ranks: ours, those of others, and what no merge can beat.

`python bench/_merges.py NAME SET OUT` does one of them on a set of `_kineto_ranks` in a process of
its own, and prints the CPU seconds of the work itself, without Python's start and imports of ours.
Peers are called as their authors call them; what is not installed is said and left out.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SGLANG = "sglang==0.5.23"
ABSENT = 3
"""Exit code: what would do it is not here, standard error says why."""
_MERGER = "sglang/srt/utils/profile_merger.py"
_PIDS, _FLOWS = 10_000_000, 1 << 32
"""The offset between the process and flow ids of two ranks, where a merge adds one."""


_began_s = 0.0
"""CPU seconds when the work itself began: see `begin`."""


class AbsentError(Exception):
    """What would merge is not here, and why."""


def begin() -> None:
    """Say that what came until now was to start; who never says so is measured whole."""
    global _began_s  # noqa: PLW0603 -- a process measures once
    _began_s = sum(_cpu())


def files(ranks: Path, form: str) -> list[Path]:
    """Return the files of a set, `raw` or `gz`, in the order of ranks."""
    found = (ranks / form).iterdir()
    return sorted(found, key=lambda file: int(re.findall(r"-(\d+)\.", file.name)[0]))


def start(ranks: Path, out: Path) -> None:  # noqa: ARG001 -- called like the others
    """Do what comes before any export: import rlprof and the plugin, read the run."""
    import rlprof

    _exporter("render")
    rlprof.read(ranks / "run" / "a-run")


def ours(ranks: Path, out: Path) -> None:
    """Export the run folder as `rlprof export` does: gz in, gz out."""
    import rlprof

    export = _exporter("render")
    run = rlprof.read(ranks / "run" / "a-run")
    begin()
    export(run=run, out=out)


def ours_raw(ranks: Path, out: Path) -> None:
    """Merge loose files that rlprof did not make: raw in, gz out."""
    export = _exporter("render_files")
    begin()
    export(files=files(ranks, "raw"), out=out)


def ours_gz(ranks: Path, out: Path) -> None:
    """Merge loose files that rlprof did not make: gz in, gz out."""
    export = _exporter("render_files")
    begin()
    export(files=files(ranks, "gz"), out=out)


def _exporter(hook: str) -> Callable[..., object]:
    """Return the hook of the timeline, with the options of the command line."""
    from rlprof import plugins
    from rlprof_timeline import Timeline

    if not hasattr(Timeline, hook):
        raise AbsentError(f"rlprof_timeline has no hook {hook}")
    return partial(getattr(plugins.hooks(Timeline()), hook), options={})


def sglang(ranks: Path, out: Path) -> None:
    """Let SGLang's ProfileMerger work: gz in, gz out; it takes all of a folder."""
    source = ranks.parent / "peers" / "profile_merger.py"
    if not source.exists():
        raise AbsentError(f"the wheel of {SGLANG} could not be had")
    spec = importlib.util.spec_from_file_location("profile_merger", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for file in files(ranks, "gz"):
        (out / file.name).hardlink_to(file)
    Path(module.ProfileMerger(str(out), "bench").merge_chrome_traces())
    for file in files(ranks, "gz"):
        (out / file.name).unlink()


def fetch_sglang(work: Path) -> None:
    """Have SGLang's merger at hand, out of its wheel; the rest of that is not needed."""
    folder = work / "peers"
    if (folder / "profile_merger.py").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    # One file of pure Python is wanted, so any interpreter's wheel will do.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download"]
    kind = ["--no-deps", "--only-binary=:all:", "--python-version=3.11"]
    platform = "--platform=manylinux_2_34_x86_64"
    done = subprocess.run([*pip, *kind, platform, "-d", folder, SGLANG], check=False)
    if done.returncode == 0:
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            (folder / "profile_merger.py").write_bytes(packed.read(_MERGER))
        wheel.unlink()


def viztracer(ranks: Path, out: Path) -> None:
    """Do `viztracer --combine`, which takes orjson if it is there: raw in, raw out."""
    _peer("orjson")
    _combine(ranks, out)


def viztracer_json(ranks: Path, out: Path) -> None:
    """Do the same with the standard library's json."""
    sys.modules["orjson"] = None  # type: ignore[assignment]
    _combine(ranks, out)


def _combine(ranks: Path, out: Path) -> None:
    builder = _peer("viztracer.report_builder").ReportBuilder
    builder([str(file) for file in files(ranks, "raw")], verbose=0).save(str(out / "merged.json"))


def tracelens(ranks: Path, out: Path) -> None:
    """Let TraceLens' TraceFuse work: raw in, gz out."""
    fuse = _peer("TraceLens.TraceFusion.trace_fuse").TraceFuse
    fuse([str(file) for file in files(ranks, "raw")]).merge_and_save(str(out / "merged.json"))


def orjson(ranks: Path, out: Path) -> None:
    """Parse, change and print one rank after the other, aligned by base: raw in, raw out."""
    fast = _peer("orjson")
    zero_ns = None
    with (out / "merged.json").open("wb") as file:
        file.write(b'{"traceEvents":[')
        for rank, source in enumerate(files(ranks, "raw")):
            trace = fast.loads(source.read_bytes())
            zero_ns = trace["baseTimeNanoseconds"] if zero_ns is None else zero_ns
            shift_us = (trace["baseTimeNanoseconds"] - zero_ns) / 1000
            for event in trace["traceEvents"]:
                event["ts"] += shift_us
                pid = event["pid"]
                event["pid"] = rank * _PIDS + (pid if isinstance(pid, int) else 0)
                if "id" in event:
                    event["id"] += rank * _FLOWS
            file.write((b"," if rank else b"") + fast.dumps(trace["traceEvents"])[1:-1])
        file.write(b"]}")


def copy_raw(ranks: Path, out: Path) -> None:
    """Copy the raw files, and no more: what no merge of them can beat."""
    _copy(files(ranks, "raw"), out)


def copy_gz(ranks: Path, out: Path) -> None:
    """Copy the gzipped files, and no more."""
    _copy(files(ranks, "gz"), out)


def _copy(sources: list[Path], out: Path) -> None:
    with (out / "all.bytes").open("wb") as into:
        for file in sources:
            with file.open("rb") as source:
                shutil.copyfileobj(source, into, 1 << 20)


def tar_gz(ranks: Path, out: Path) -> None:
    """Put the gzipped files into one file: what no merge can beat."""
    with tarfile.open(out / "all.tar", "w") as packed:
        for file in files(ranks, "gz"):
            packed.add(file, file.name)


def gunzip(ranks: Path, out: Path) -> None:  # noqa: ARG001 -- called like the others
    """Decompress with the standard library, and no more: what of gz in is no merging."""
    for file in files(ranks, "gz"):
        with gzip.open(file) as source:
            while source.read(1 << 20):
                pass


def _peer(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise AbsentError(f"{name.partition('.')[0]} is not installed: {exc}") from exc


METHODS: dict[str, Callable[[Path, Path], None]] = {
    "start": start,
    "ours": ours,
    "ours-raw": ours_raw,
    "ours-gz": ours_gz,
    "sglang": sglang,
    "tracelens": tracelens,
    "viztracer": viztracer,
    "viztracer-json": viztracer_json,
    "orjson": orjson,
    "gunzip": gunzip,
    "tar-gz": tar_gz,
    "copy-gz": copy_gz,
    "copy-raw": copy_raw,
}


def main() -> int:
    name, ranks, out = sys.argv[1:]
    begin()
    try:
        METHODS[name](Path(ranks), Path(out))
    except AbsentError as exc:
        print(exc, file=sys.stderr)
        return ABSENT
    print(json.dumps(sum(_cpu()) - _began_s))
    return 0


def _cpu() -> Iterator[float]:
    """Yield the CPU seconds of this process and of those it has waited for."""
    yield time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield children.ru_utime + children.ru_stime


if __name__ == "__main__":
    sys.exit(main())
