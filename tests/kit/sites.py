"""Distributions installed into folders of their own, as pip installs them, without an index."""

import os
import subprocess
import sys
from pathlib import Path


def install(site, *folders):
    """Install the distributions in *folders* into *site*; return the environment that sees it."""
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    argv += ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    done = subprocess.run([*argv, *map(str, folders)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(site)}


def its_tests(distribution, env):
    """Run the tests of *distribution* as its author does; return what pytest said."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(argv, cwd=Path(distribution), env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
