"""`rlprof completion SHELL`: print a script that completes commands and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.errors import RlprofError

if TYPE_CHECKING:
    import argparse

SHELLS = ("bash", "zsh", "fish")


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "completion",
        help="complete commands and options in your shell",
        description="Print a script for your shell; it needs shtab (pip install shtab). In bash: "
        'eval "$(rlprof completion bash)". In fish: rlprof completion fish | source. In zsh: '
        "write it to a file _rlprof in your $fpath.",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise RlprofError("completion: shtab is missing; pip install shtab") from None
    print(shtab.complete(args.parser, args.shell))
    return 0
