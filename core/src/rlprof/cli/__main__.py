"""`python -m rlprof.cli` is `rlprof`, for where scripts are not on the PATH."""

from __future__ import annotations

import sys

from rlprof.cli import main

sys.exit(main())
