"""The pictures of the documentation, as headless Chromium draws the report of a run.

`.envs/test/bin/python bench/pictures.py RUN` writes into docs/pictures, in light and dark: the
report and the timeline of RUN, a run of `make demo`; and for each cause of docs/slow-step.md the
slow step of a simulated run, with what `rlprof why` prints of it. The simulation is the one of
tests/report, from a fixed seed. `make pictures` runs the demo and calls this.

Perfetto's page does not load without a network, so the timeline is the one in the report.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from rlprof import read
from rlprof_cli import main as rlprof_main
from rlprof_report import analyse
from rlprof_report._page import page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.report.made_runs import make_fleet  # noqa: E402 -- found by the path above
from tests.report.page.chromium import looked_at  # noqa: E402 -- found by the path above

PICTURES = ROOT / "docs/pictures"
SHAPES = {
    "tail": "long-tail",
    "straggler": "slow-rank",
    "replica": "uneven-replicas",
    "sync": "weight-sync",
    "gap": "gap",
}
"""What is planted, and the name of its picture."""
WHERE = {"long-tail": "#rollout figure:nth-of-type(2)", "uneven-replicas": "#rollout figure"}
"""Where the page shows it, if not in the slow step over all processes."""
MOST_BYTES = 150_000


def main() -> int:
    """Draw all pictures; fail if a planted cause is not the first that `rlprof why` names."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        demo = _page(read(sys.argv[1]).path, Path(folder))
        jobs = _in_both({"page": demo, "of": "body", "tall": 720, "scale": 1.2}, "report")
        jobs += _in_both({"page": demo, "of": "#gantt", "tall": 340}, "timeline")
        for cause, name in SHAPES.items():
            run = make_fleet(Path(folder) / name, [cause], ranks=4)
            findings = analyse(read(run)).findings
            if not findings or findings[0].cause != cause:
                wrong.append(f"{name}: rlprof why does not name {cause} first")
            (PICTURES / f"{name}.txt").write_text(_why(run), encoding="utf-8")
            job = {"page": _page(run, Path(folder)), "of": WHERE.get(name, "#still")}
            jobs += _in_both(job, name, script=False)
        _draw(jobs)
    for file in sorted(PICTURES.glob("*.png")):
        print(f"{file.stat().st_size:8,} {file.relative_to(ROOT)}")
        if file.stat().st_size > MOST_BYTES:
            wrong.append(f"{file}: is larger than {MOST_BYTES:,} bytes")
    print("\n".join(wrong))
    return bool(wrong)


def _in_both(job: dict[str, Any], name: str, *, script: bool = True) -> list[dict[str, Any]]:
    """Return *job* once for light and once for dark."""
    return [
        {"scale": 1.5, **job, "script": script, "dark": tone == "dark",
         "shot": str(PICTURES / f"{name}-{tone}.png")}
        for tone in ("light", "dark")
    ]  # fmt: skip


def _page(run: Path, folder: Path) -> str:
    path = folder / f"{run.name}.html"
    text = page(analyse(read(run))).replace(str(run.parent), "outputs/profile")
    path.write_text(text, encoding="utf-8")
    return str(path)


def _why(run: Path) -> str:
    """Return what `rlprof why` prints of *run*, as if it lay where runs lie."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        rlprof_main(["why", str(run)])
    return said.getvalue().replace(str(run.parent), "outputs/profile")


def _draw(jobs: list[dict[str, Any]]) -> None:
    for job, seen in zip(jobs, looked_at(jobs), strict=True):
        if not seen["ready"] or seen["errors"]:
            raise SystemExit(f"{job['shot']}: the page did not load: {seen['errors']}")


if __name__ == "__main__":
    sys.exit(main())
