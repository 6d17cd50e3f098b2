"""One file per parser, each with a `PARSER`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz._loop import Parser

NAMES = ("config", "kineto")


def parser_named(name: str) -> Parser:
    """Import the parser and nothing of the others."""
    parser: Parser = import_module(f"tests.fuzz.parsers.{name}").PARSER
    return parser
