"""What will and will not work here, said before a run: `rlprof doctor`.

`findings()` looks at the calling process, cheaply, also in training. `examine()` is the whole of
it: one small file per thing looked at, each with functions that return findings. Whatever strangers
wrote (plugins, back ends, file systems) is asked in a child process (`_child`, `child`), so that
one that hangs or crashes is one more finding.
"""

from __future__ import annotations

from rlprof_cli.doctor._command import add, run
from rlprof_cli.doctor._examine import examine, findings
from rlprof_cli.doctor._finding import Finding, Level

__all__ = ["Finding", "Level", "add", "examine", "findings", "run"]
