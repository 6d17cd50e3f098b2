"""What will and will not work here, reported before a run: `rlprof doctor`.

`findings()` examines the calling process; it is cheap, also in training. `examine()` runs all
checks: one small file per subject, each with functions that return findings. Code of others
(plugins, back ends, file systems) runs in a child process (`_child`, `child`): if it hangs or
crashes, that is one more finding.
"""

from __future__ import annotations

from rlprof_cli.doctor._command import add, run
from rlprof_cli.doctor._examine import examine, findings
from rlprof_cli.doctor._finding import Finding, Level

__all__ = ["Finding", "Level", "add", "examine", "findings", "run"]
