"""The pages of the reference that nobody writes by hand: from parsers, signatures and docstrings.

They exist on the site alone; in a checkout, `--help` and `help()` say the same.
"""  # noqa: INP001 -- MkDocs loads the file by its path

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import rlprof
import rlprof_run
from rlprof_cli import command_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

_IN_TRAINING = ("open", "launch", "follow", "annotate", "span", "trajectory")
_SESSION = ("Session", "Off", "Follower")
SHARED = ("help", "quiet", "verbose")
"""Arguments of every command."""
_CALLS = sorted(name for name in dir(rlprof.Off) if not name.startswith("_"))
_OF_A_RUN = (
    "rlprof_run.read", "rlprof_run.Run", "rlprof_run.CaptureResult", "rlprof_run.Process",
    "rlprof_run.Span", "rlprof_run.Skipped", "rlprof_run.Answer", "rlprof_run.Left",
    "rlprof_run.Selection",
)  # fmt: skip
_FOR_PLUGINS = (
    "hookimpl", "register", "Target", "Window", "Capture", "Recording", "Artifact", "Advice",
    "Ready", "Launch", "Workers", "Order", "Leader", "Clock", "safe_name",
)  # fmt: skip
_SELF = "rlprof.session._session.Session"
_FOR_LISTENERS = [
    *(f"{_SELF}.{name}" for name in ("watch_spans", "add_span", "add_figures", "write", "log")),
    *(
        f"rlprof.session._targets.Targets.{name}"
        for name in ("open_window", "go_to", "close_window", "lead")
    ),
]
_FOR_FLEETS = [f"rlprof.session._elsewhere.{name}" for name in ("Members", "MembersWindow")]
_ERRORS = ("RlprofError", "ConfigError", "PluginError", "CaptureError", "RunError")


def pages() -> dict[str, str]:
    """Return the text of each page, by its file name."""
    return {"commands.md": commands(), "api.md": api(), "hooks.md": hooks()}


def commands() -> str:
    """Write down what `rlprof COMMAND --help` says of every command that is installed."""
    found = command_line().parse_args([]).parsers
    lines = ["# Every command", "", "What `rlprof COMMAND --help` prints, as a page.", ""]
    for name, command in found.items():
        lines += [f"## `rlprof {name}`", "", _plain(command.description or ""), ""]
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{word}` | {_plain(text)} |" for word, text in arguments(command)]
        lines += ["", _plain(command.epilog or ""), ""]
    return "\n".join(lines)


def arguments(command: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Give each argument of *command* as one writes it, and its help."""
    for action in command._actions:  # noqa: SLF001 -- argparse lists them nowhere else
        if action.dest in SHARED:
            continue
        value = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
        if action.choices and not action.metavar:
            value = "{" + ",".join(map(str, action.choices)) + "}"
        said = (action.help or "") % {**vars(action), "prog": command.prog}
        yield " ".join([*action.option_strings[-1:], str(value)]).strip(), said


def api() -> str:
    """List the public names, for mkdocstrings to fill in."""
    lines = ["# The Python API", ""]
    groups: tuple[tuple[str, Sequence[str]], ...] = (
        ("In training", [f"rlprof.{name}" for name in _IN_TRAINING]),
        ("A session", [f"rlprof.{name}" for name in _SESSION]),
        ("A run as values", _OF_A_RUN),
        ("For plugins", [f"rlprof.{name}" for name in _FOR_PLUGINS]),
        ("Errors", [f"rlprof.{name}" for name in _ERRORS]),
    )
    for title, names in groups:
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"::: {_place(name)}", "    options:", "      heading_level: 3"]
            if name == "rlprof.Session":  # the rest is for listeners and fleets
                lines += ["      inherited_members: true", f"      members: {_CALLS}"]
            elif title == "A run as values" or name == "rlprof.Artifact":
                lines += ["      show_if_no_docstring: true"]
            lines += [""]
    return "\n".join(lines)


def hooks() -> str:
    """List the hook specifications and what stands around them, for mkdocstrings to fill in."""
    lines = ["# Every hook", ""]
    for title, places in (
        ("Tools and engines", ("rlprof.hookspecs.Recorder",)),
        ("Exporters", ("rlprof_run.exporterspecs.Exporter",)),
        ("Listeners", ("rlprof.listenerspecs.Listener",)),
        ("A session, for listeners and leaders", _FOR_LISTENERS),
        ("Members of a fleet of your own", _FOR_FLEETS),
    ):
        lines += [f"## {title}", ""]
        for place in places:
            lines += [f"::: {place}", "    options: {heading_level: 3}", ""]
    return "\n".join(lines)


def _place(name: str) -> str:
    """Return where a name of `rlprof` or `rlprof_run` is defined."""
    package, _, short = name.rpartition(".")
    found = getattr(rlprof if package == "rlprof" else rlprof_run, short)
    module = getattr(found, "__module__", None)
    return f"{module}.{found.__name__}" if module and hasattr(found, "__name__") else name


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
