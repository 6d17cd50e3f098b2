"""Finds what could disturb a recording in this process: `findings()`, from rlprof-cli."""

from __future__ import annotations

from rlprof.distributions import load

load("rlprof_cli.doctor", asked="doctor")

from rlprof_cli.doctor import Finding, Level, examine, findings  # noqa: E402

__all__ = ["Finding", "Level", "examine", "findings"]
