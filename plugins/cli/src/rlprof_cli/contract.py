"""The contract in the words of an author: hooks marked wrongly, or never called.

Core refuses only what it cannot call; `rlprof plugins` and the kit say all of this.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import closest, shown, with_article
from rlprof.plugins import spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlprof.plugins import Kind

OF_ENGINES = frozenset({"handle", "workers", "tools"})
"""Arguments that only hooks of engines get."""


def arguments(kind: Kind) -> dict[str, list[str]]:
    """Return the hooks of *kind*, each with the arguments it may name."""
    return {
        name: [
            arg
            for arg in inspect.signature(hook).parameters
            if arg != "self" and not (kind == "tool" and arg in OF_ENGINES)
        ]
        for name, hook in vars(spec_of(kind)).items()
        if not name.startswith("_")
    }


def misfits(kind: Kind, plugin: type[Any]) -> list[str]:
    """List where the class *plugin* differs from the contract; empty: it fits."""
    options = getattr(plugin, "Options", None)
    found = []
    if options is not None and not (isinstance(options, type) and attrs.has(options)):
        found.append(f"has Options {shown(options)} that are not an attrs class")
    return [*found, *_misfits(kind, plugin)]


def _misfits(kind: Kind, plugin: type[Any]) -> Iterator[str]:
    known, marked, made = arguments(kind), set(), plugin()
    for method in dir(plugin):
        static = inspect.getattr_static(plugin, method, None)
        function = getattr(static, "__func__", static)
        mark = getattr(function, "rlprof_impl", None)
        if mark is not None:
            name = mark["specname"] or method
            marked.add(name)
            if name in known:
                yield from _wrong_arguments(name, getattr(made, method), known[name])
            else:
                has = f"({with_article(kind)} has {', '.join(known)})"
                yield f"marks {name!r}, which is not a hook{closest(name, known)} {has}"
    for name in (name for name in known if name not in marked):
        method = inspect.getattr_static(plugin, name, None)
        if (
            callable(getattr(method, "__func__", method))
            and method is not vars(spec_of(kind))[name]
        ):
            yield f"has a method {name!r} that is never called; mark it with @rlprof.hookimpl"


def _wrong_arguments(name: str, hook: Callable[..., Any], known: list[str]) -> Iterator[str]:
    for arg, parameter in inspect.signature(hook).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        has_default = parameter.default is not parameter.empty
        if has_default and arg in known:
            yield (
                f"has a default for {arg!r} in {name}, so it never gets a value; remove the default"
            )
        if not has_default and arg not in known:
            why = "only engines are given" if arg in OF_ENGINES else "is not given"
            hint, there = closest(arg, known), ", ".join(known)
            yield f"takes {arg!r} in {name}, which {why}{hint} (there are: {there})"
