"""This Python, this core, and the limits of the system for a process."""

from __future__ import annotations

import resource
import sys
from importlib import metadata

from rlprof_cli.doctor._finding import Finding, unless_wrong

_NEWEST = (3, 14)
"""The newest Python that rlprof was tried with."""
_FEW_FILES = 1024
"""With fewer, data loaders and sockets of a trainer exhaust the limit, and rlprof's files fail."""


def look_at_python(version: tuple[int, ...] = sys.version_info[:3]) -> list[Finding]:
    """Report whether rlprof supports this Python."""
    text = ".".join(map(str, version))
    newest = ".".join(map(str, _NEWEST))
    if version[:2] <= _NEWEST:  # pip installs rlprof on no older one
        return [Finding("ok", "python", text)]
    what = f"{text} is newer than what rlprof was tried with"
    return [Finding("warn", "python", what, f"where something breaks, use Python {newest}")]


def look_at_core() -> list[Finding]:
    """Report which rlprof this is, and whether other copies are in its way."""
    # A folder may be on the path twice, so compare distributions by location.
    found = {
        str(dist.locate_file("")): dist.version
        for dist in metadata.distributions(name="rlprof-core")
    }
    if not found:
        what = "is imported without being installed, so plugins cannot tell whether it fits"
        return [Finding("BAD", "rlprof", what, "pip install rlprof-core")]
    versions = list(found.values())
    wrong = []
    if len(set(versions)) > 1:
        places = " and ".join(f"{version} in {place}" for place, version in found.items())
        what = f"is installed more than once: {places}"
        wrong = [Finding("warn", "rlprof", what, "uninstall all but one")]
    return unless_wrong("rlprof", versions[0], wrong)


def look_at_limits() -> list[Finding]:
    """Report whether the system's limits leave room for a profile."""
    wrong = []
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < _FEW_FILES:
        what = f"this process may open only {files} files"
        advice = f"ulimit -n {_FEW_FILES} or more, before the run"
        wrong.append(Finding("warn", "ulimit -n", what, advice))
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size != resource.RLIM_INFINITY:
        what = f"no file may grow beyond {size:,} bytes, so larger traces are cut"
        wrong.append(Finding("warn", "ulimit -f", what, "ulimit -f unlimited, before the run"))
    return unless_wrong("ulimit", f"{_many(files)} files, of any size", wrong)


def _many(limit: int) -> str:
    return "any number of" if limit == resource.RLIM_INFINITY else f"{limit:,}"
