"""What `import rlprof` costs and loads, compared with its dependencies.

`.envs/test/bin/python bench/imports.py`
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from _measure import machine, verdict


def seconds(statement: str) -> float:
    """Time a fresh interpreter that runs *statement*."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - began


def main() -> int:
    bases, ours = [], []
    for _ in range(15):  # in turn, so that a busy moment hits both
        bases.append(seconds("import attrs, pluggy"))
        ours.append(seconds("import rlprof"))
    print(f"imports: {machine()}")
    print(
        f"  import attrs, pluggy {min(bases) * 1e3:.0f} ms, import rlprof {min(ours) * 1e3:.0f} ms"
    )
    print(
        f"  medians {statistics.median(bases) * 1e3:.0f} ms, {statistics.median(ours) * 1e3:.0f} ms"
    )
    over = (min(ours) - min(bases)) * 1e3
    return 0 if verdict("import rlprof over import attrs, pluggy", over, 40, "ms") else 1


if __name__ == "__main__":
    sys.exit(main())
