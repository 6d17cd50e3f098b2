"""The signatures of SGLang's releases, kept beside this file.

`python -m tests.sglang_adapter.signatures --refresh` reads them out of the wheels of each release;
`--check` asks whether the newest release of the index says anything that none of these does.
A wheel has 3 to 40 MB; a whole refresh takes minutes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.sglang_adapter.extract import described
from tests.signatures.record import Json, Record

RELEASES = (
    "sglang==0.5.18", "sglang==0.5.19", "sglang==0.5.20", "sglang==0.5.21",
    "sglang==0.5.22", "sglang==0.5.23",
)  # fmt: skip
"""The newest six; rlprof drives these, and later ones."""

RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described)


def number(release: str) -> tuple[int, ...]:
    """Return the number of a release: `sglang==0.5.3.post2` is (0, 5, 3, 2)."""
    return tuple(int(word) for word in re.findall(r"\d+", release.partition("==")[2]))


def kept() -> dict[str, Json]:
    """Return what is known: release → its wheel, and what was read in it."""
    return RECORD.kept()


if __name__ == "__main__":
    sys.exit(RECORD.main("tests.sglang_adapter.signatures", __doc__))
