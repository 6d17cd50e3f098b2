"""A parser that suggests the command or option you may have meant."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from rlprof.distributions import how_to_install
from rlprof.errors import closest

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_COMMAND = re.compile(r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)")

_ELSEWHERE = {
    "attach": "rlprof-ray", "collect": "rlprof-ray", "diff": "rlprof-report",
    "fetch": "rlprof-bucket", "send": "rlprof-bucket", "top": "rlprof-report",
    "view": "rlprof-timeline", "why": "rlprof-report",
}  # fmt: skip
"""Command → the distribution that offers it."""
_MANNERS = {
    ("-q", "--quiet"): "print results and errors, but no progress",
    ("-v", "--verbose"): "also print debug messages, and the traceback of an error",
}


def page(command: str | None) -> str:
    """Return where *command* is explained; None: no command was named."""
    named = f"rlprof {command} --help explains this command"
    return named if command else "rlprof --help lists all commands"


class Parser(argparse.ArgumentParser):
    """The parser of the command line, and of each command."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2, the usage, what is wrong, and where to read on."""
        if wrong := _NO_COMMAND.match(message):
            there = wrong[2].replace("'", "").split(", ")
            hint = closest(wrong[1], [*there, *_ELSEWHERE])
            if wrong[1] in _ELSEWHERE:
                hint = f" is installed; {how_to_install(_ELSEWHERE[wrong[1]])}"
            message = f"no command {wrong[1]!r}{hint}"
        super().error(f"{message}\n{page(self.prog.partition(' ')[2])}")

    def add_manners(self) -> None:
        """Take `-q` and `-v`, unless the command has arguments of these names."""
        for flags, text in _MANNERS.items():
            with suppress(argparse.ArgumentError):
                self.add_argument(*flags, action="store_true", default=argparse.SUPPRESS, help=text)

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Exit as `error` does: no argument takes *words*."""
        there = [one[2:] for one in self._option_string_actions if one.startswith("--")]
        typed = words[0].partition("=")[0]
        hint = closest(typed.lstrip("-"), there).replace("'", "'--", 1) if typed[:1] == "-" else ""
        self.error(f"unrecognized arguments: {' '.join(words)}{hint}")
