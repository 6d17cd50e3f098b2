"""Build the libraries in this environment if they are missing, and print their folder."""

import sys
from pathlib import Path

from tests.npu_real.stand_ins.build import HERE, build

folder = Path(sys.prefix) / "stand_ins"
sources = [file.read_bytes() for file in (HERE / "cann.c", HERE / "build.py")]
stamp = folder / "built-of"
if not stamp.exists() or stamp.read_bytes() != b"".join(sources):
    build(folder)
    stamp.write_bytes(b"".join(sources))
print(folder)
