"""`rlprof new KIND NAME`: start a plugin distribution that passes the conformance kit."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, get_args

from rlprof import plugins
from rlprof.distributions import KNOWN
from rlprof.errors import RlprofError, shown
from rlprof_cli.offers import offers

if TYPE_CHECKING:
    import argparse

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "plugin.py": "src/{package}/__init__.py",
    "py.typed": "src/{package}/py.typed",
    "test_conformance.py": "tests/test_conformance.py",
}
"""Template → its path; a template of the kind comes before one of all kinds."""
OURS = frozenset({
    "bucket", "cli", "core", "engine", "live", "npu", "nsys", "ray", "remote", "report", "run",
    "sglang", "testing", "timeline", "torch", "traces", "trl", "verl", "vllm",
})  # fmt: skip
"""The distributions rlprof-NAME of this project: pip would replace one by another of its name."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "new",
        help="start a plugin of your own",
        description="Write a distribution rlprof-NAME that offers a plugin NAME: a pyproject.toml, "
        "the class with its hooks, a README, and tests (the conformance kit, or a session that a "
        "listener hears). It works unchanged; put your code into the hooks. No existing file is "
        "overwritten.",
    )
    parser.add_argument("kind", choices=get_args(plugins.Kind), help="the kind of plugin")
    parser.add_argument("name", metavar="NAME", help="its name in a config: my_tool")
    parser.add_argument("--dir", default=".", metavar="DIR", help="make its folder here")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the files, and print what to do with them."""
    _check_name(args.kind, args.name)
    home = Path(args.dir)
    if not home.is_dir():
        raise RlprofError(f"--dir: {home} is not a folder; create it, or name another")
    folder = home / f"rlprof-{args.name.replace('_', '-')}"
    if folder.exists() or folder.is_symlink():
        raise RlprofError(f"{folder} exists already; remove it, or choose another name")
    words = _words(args.kind, args.name)
    for template, place in _FILES.items():
        file = folder / place.format(**words)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_filled_in(args.kind, template, words), encoding="utf-8")
        print(f"wrote {file}")
    print(f"\nnext:\n  cd {folder}\n  pip install -e '.[test]'\n  pytest\n  rlprof plugins")
    print(
        "\nif rlprof is not on your index: run `pip install --no-deps -e .` in an environment "
        "with rlprof and pytest"
    )
    return 0


def _check_name(kind: plugins.Kind, name: str) -> None:
    hint = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name.endswith("_") or "__" in name:
        could = f"; {hint!r} would do" if re.match("[a-z]", hint) and hint != name else ""
        raise RlprofError(
            f"{shown(name)} cannot be the name of a plugin; use up to 40 small letters, digits "
            f"and single '_', beginning with a letter{could}"
        )
    if keyword.iskeyword(name):
        raise RlprofError(f"{name!r} is a keyword of Python; choose another name")
    taken = {offer.name: offer.distribution for offer in offers() if offer.kind == kind}
    taken |= {word: dist for (of, word), dist in KNOWN.items() if of == kind}
    if name in taken:
        raise RlprofError(f"{kind} {name!r} is offered by {taken[name]}; choose another name")
    if name in OURS:
        raise RlprofError(f"rlprof-{name} is a distribution of rlprof itself; choose another name")


def _words(kind: str, name: str) -> dict[str, str]:
    """Return the values of the fields in the templates."""
    major, minor = (plugins.core_version() or "0.1").split(".")[:2]
    return {
        "kind": kind,
        "name": name,
        "Name": "".join(part.capitalize() for part in name.split("_")),
        "package": f"rlprof_{name}",
        "distribution": f"rlprof-{name.replace('_', '-')}",
        "core": f"rlprof-core>={major}.{minor},<{major}.{int(minor) + 1}",
    }


def _filled_in(kind: str, template: str, words: dict[str, str]) -> str:
    home = resources.files("rlprof_cli") / "_templates"
    own = home / kind / f"{template}.txt"
    file = own if own.is_file() else home / f"{template}.txt"
    return Template(file.read_text(encoding="utf-8")).substitute(words)
