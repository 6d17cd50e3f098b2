"""The signatures of SGLang's releases, kept beside this file.

`python -m tests.sglang_adapter.signatures --refresh` reads them out of the wheels of each release;
`--check` asks whether the newest release of the index says anything that none of these does.
A wheel has 3 to 40 MB; a whole refresh takes minutes.
"""

import sys
from pathlib import Path

from tests.sglang_adapter.extract import described
from tests.signatures.record import Record

RELEASES = tuple(f"sglang==0.5.{patch}" for patch in range(18, 24))
"""The newest six; rlprof drives these, and later ones."""

RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described)


if __name__ == "__main__":
    sys.exit(RECORD.main("tests.sglang_adapter.signatures", __doc__))
