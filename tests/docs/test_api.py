"""What the pages write of `rlprof` in Python is there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import rlprof
from rlprof import hookspecs, plugins
from rlprof_cli.offers import COMMANDS
from tests.docs.pages import PAGES

METHODS = [name for name in dir(rlprof.Off) if not name.startswith("_")]
ROOMS = {"control", "doctor", "hookspecs", "testing", "types"}
GROUPS = {
    group.rpartition(".")[2] for group in (*plugins.GROUPS.values(), COMMANDS)
}  # fmt: skip
FILES = {"json"}
"""What makes `rlprof.x` the name of a file."""
DOTTED = sorted({
    name
    for text in (*PAGES.values(), rlprof.__doc__, hookspecs.__doc__)
    for name in re.findall(
        r"(?<![\w./\"-])(?<!from )(?<!-m )rlprof(?:\.[A-Za-z_]\w*)+(?![\w/-])", text
    )
    if name.split(".")[1] not in {*GROUPS, *FILES}
})  # fmt: skip
"""What the pages write as `rlprof.x` or `rlprof.x.y`, but for what they import or run."""


def test_a_name_that_is_none_is_an_error():
    """Names that are imported late fail, and are listed, as others are."""
    with pytest.raises(AttributeError, match="module 'rlprof' has no attribute 'nope'"):
        _ = rlprof.nope
    assert set(dir(rlprof)) >= ROOMS


@pytest.mark.slow
def test_every_dotted_name_is_there_after_one_import():
    """What a page writes can be typed after `import rlprof`, each in an interpreter of its own."""
    program = (
        "import os, sys, rlprof\n"
        "for name in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"  # so that no name finds what another has imported
        "        eval(name)\n"
        "        print(name, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, *DOTTED], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == DOTTED
    assert {"rlprof.hookspecs.Recorder", "rlprof.doctor.findings", "rlprof.testing"} <= set(DOTTED)


def test_no_method_of_a_session_is_invented():
    """Whatever a page calls on `prof` can be called."""
    for path, text in PAGES.items():
        for name in re.findall(r"\bprof\.(\w+)", text):
            assert name in METHODS, f"{path}: prof.{name}"
