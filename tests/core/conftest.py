"""The `rlprof` command as a shell runs it."""

import pytest

from rlprof_cli import main


@pytest.fixture(name="shell")
def _shell(capsys):
    """Return a function that runs `rlprof` and returns its exit code, stdout and stderr."""

    def run(*argv):
        capsys.readouterr()
        try:
            code = main([*map(str, argv)])
        except SystemExit as exc:
            code = exc.code
        return (code, *capsys.readouterr())

    return run
