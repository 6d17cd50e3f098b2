"""Every option reaches CANN: the bits of `aclprof`, or the file torch_npu writes what it took into."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

# Bits of the mask that aclprofCreateConfig is given, as the released wheel sets them.
ACL_API, TASK_TIME, AICORE, AICPU, L2 = 0x1, 0x2, 0x4, 0x8, 0x10
