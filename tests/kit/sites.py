"""Distributions that pip installs into their own folders, without an index."""

import os

from tests.waiting import python


def install(site, *folders):
    """Install the distributions in *folders* into *site*; return the environment that sees it."""
    words = ["--no-deps", "--no-build-isolation", "--no-index", "--target", site, *folders]
    done = python("-m", "pip", "--disable-pip-version-check", "-q", "install", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(site)}


def its_tests(distribution, env):
    """Run the tests of *distribution* as its author does; return pytest's output."""
    words = ("-q", "-p", "no:cacheprovider", "-W", "error")
    done = python("-m", "pytest", *words, cwd=distribution, env=env, timeout=None)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
