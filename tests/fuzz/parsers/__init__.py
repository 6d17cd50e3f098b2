"""One file per parser, each with a `PARSER`."""

from collections.abc import Callable
from importlib import import_module

import attrs

NAMES = ("config", "kineto")


@attrs.frozen
class Parser:
    """What is fed, and what must hold."""

    name: str
    tokens: tuple[bytes, ...]
    seeds: tuple[bytes, ...]
    """Inputs as people and programs write them."""
    check: Callable[..., None]
    """`check(data, folder)` feeds one input; raises if something does not hold."""


def parser_named(name: str) -> Parser:
    """Import the parser and nothing of the others."""
    parser: Parser = import_module(f"tests.fuzz.parsers.{name}").PARSER
    return parser
