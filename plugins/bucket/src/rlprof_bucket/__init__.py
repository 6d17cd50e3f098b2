"""Runs in a bucket: `run_dir: s3://bucket/profiles`, or any other URL that fsspec knows.

Each host writes its part of a run to a local disk, and a helper process of each session copies what
is new into the bucket. So training never waits for the network, except for the last copy when its
session closes.

`joining` finds the run that other hosts have opened; `_listener` is what core calls during a
session; both talk to `_helper`, the helper process seen from training, which runs `copier`.
`stored` is the bucket. `fetch` and `send` are commands.
"""

from __future__ import annotations

from rlprof_bucket._listener import Bucket
from rlprof_bucket.joining import join
from rlprof_bucket.stored import fault_of

__all__ = ["Bucket", "fault_of", "join"]
