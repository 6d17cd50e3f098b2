"""Whether the installed plugins load, each in a separate child."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.distributions import how_to_install
from rlprof_cli.doctor._child import ask
from rlprof_cli.doctor._finding import Finding, advised
from rlprof_cli.offers import offers

if TYPE_CHECKING:
    from collections.abc import Iterator


def look_at_plugins(names: set[str] | None, timeout_s: float) -> Iterator[Finding]:
    """Load all plugins but tools: dry windows load these.

    With *names*, check only these: the config does not use the others.
    """
    found = [offer for offer in offers() if names is None or offer.name in names]
    for kind, name in dict.fromkeys((offer.kind, offer.name) for offer in found):
        if kind == "tool":
            continue
        answer = ask("load", timeout_s=timeout_s, kind=kind, name=name)
        where = f"{kind} {name}"
        if answer.fault:
            advice = "uninstall or repair it"
            yield Finding("BAD", where, f"importing it {answer.fault}", advice)
        elif answer.value:
            yield Finding("BAD", where, answer.value)
        else:
            yield Finding("ok", where, "fits")
            if kind == "engine":
                yield from _capabilities(name, timeout_s)
    if names is None and all(offer.kind == "exporter" for offer in found):
        what = "no tool is installed, so nothing can be recorded"
        todo = f"install what you use, for example: {how_to_install('rlprof-torch')}"
        yield Finding("BAD", "plugins", what, todo)


def _capabilities(name: str, timeout_s: float) -> Iterator[Finding]:
    """Report what the plugin of an engine says about the installed engine."""
    where = f"engine {name}"
    answer = ask("advise", timeout_s=timeout_s, name=name)
    if answer.fault:
        yield Finding("warn", where, f"asking it what works here {answer.fault}")
    for advice in answer.value or ():
        yield advised(where, advice)
