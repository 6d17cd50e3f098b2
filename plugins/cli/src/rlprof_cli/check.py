"""`rlprof check FILE`: check a config, and that its plugins are installed and accept it."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config import check_config, merge_launches
from rlprof.distributions import how_to_install
from rlprof.errors import ConfigError
from rlprof.rundir import as_json
from rlprof_cli._advice import cautions, engine_words
from rlprof_cli._of_verl import is_of_verl
from rlprof_cli.arguments import add_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rlprof.config import Config, ToolUse
    from rlprof.types import Launch

    Tools = Mapping[str, Sequence[ToolUse]]

_LONGEST = 40
"""Characters of an engine argument's value that are shown."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "check",
        help="check a config and the plugins it names, and report all faults at once",
        description="Check the keys and values of FILE, the plugins it names, their options and "
        "their claims. The command prints every fault with its line, or the cautions of the "
        "plugins. It records nothing and imports nothing heavy. Exit code 0: a run can start with "
        "FILE.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="a YAML file, of rlprof or of verl")
    parser.add_argument(
        "overrides",
        nargs="*",
        default=[],  # else argparse calls them required
        metavar="KEY=VALUE",
        help="Hydra overrides for a config of verl",
    )
    parser.add_argument(
        "--convert", action="store_true", help="print a config of verl as one of rlprof"
    )
    parser.add_argument(
        "--role",
        action="append",
        metavar="ROLE",
        help="check only the plugins of this role, as one of its processes would "
        "(may be repeated; default: all roles)",
    )
    parser.add_argument(
        "--keys",
        action="store_true",
        help="instead of checking FILE, print every key of a config and every option of the "
        "installed plugins, with its default and its meaning",
    )
    add_json(parser, "the plugins of each role, cautions and faults (with --keys: the keys)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was understood, or raise ConfigError."""
    if args.keys:
        return _print_keys(as_data=args.json)
    if args.file is None:
        args.parsers["check"].error("the following arguments are required: FILE")
    try:
        converted, (config, tools), missing = _read(args)
    except ConfigError as exc:
        if not args.json:
            raise
        print(as_json({"file": args.file, "faults": list(exc.faults)}, indent=2))
        return 1
    if args.json:
        print(as_json(_values(args.file, config, tools, missing), indent=2))
    elif args.convert:
        import yaml

        print(yaml.safe_dump(converted.config, sort_keys=False), end="")
    elif converted:
        _print_overrides(args, config, missing)
        _print_roles(args, config, tools)
        for words in converted.notes:
            print(f"  {words}")
    elif not config.enabled:
        print(f"{args.file}: fine, and off (enabled: false)")
    else:
        print(f"{args.file}: fine")
        _print_roles(args, config, tools)
    return 0


def _read(args: argparse.Namespace) -> tuple[Any, tuple[Config, Tools], list[str]]:
    """Read and check the file; also return what a config of verl becomes, and what it lacks."""
    if not _is_verl(args):
        return None, check_config(args.file, roles=args.role), []
    try:
        from rlprof_verl import files
    except ImportError:
        words = f"rlprof-verl reads configs of verl; {how_to_install('rlprof-verl')}"
        raise ConfigError([words]) from None
    return files.converted(args.file, args.overrides)


def _print_keys(*, as_data: bool) -> int:
    from rlprof_cli._keys import all_keys, keys_table

    keys, faults = all_keys()
    print(as_json([attrs.asdict(one) for one in keys], indent=2) if as_data else keys_table(keys))
    for fault in faults:
        print(f"rlprof: left out: {fault}", file=sys.stderr)
    return 0


def _print_overrides(args: argparse.Namespace, config: Config, missing: list[str]) -> None:
    """Print which lines a config of verl lacks, and when rlprof records with them."""
    print(f"{args.file}: fine, a config of verl")
    if missing:
        print("  rlprof records it with these overrides:")
        print(*(f"    {line}" for line in missing), sep="\n")
    print(f"  steps: {config.steps.as_data()}, {config.mode}, into {config.run_dir}")


def _print_roles(args: argparse.Namespace, config: Config, tools: Tools) -> None:
    """Print what records each role, and what to know before the run."""
    for role, uses in tools.items():
        names = [use.name if use.kind == "tool" else engine_words(use) for use in uses]
        # verl's servers get what they need from rlprof-verl
        needs = (
            [] if _is_verl(args) else _needs(merge_launches({use.name: use.launch for use in uses}))
        )
        who = "the engine" if any(use.kind == "engine" for use in uses) else "its processes"
        start = f"; start {who} with {', '.join(needs)}" if needs else ""
        print(f"  {role}: {', '.join(names) or 'spans only'}{start}")
    for role in args.role or ():
        if role not in tools and config.roles:
            print(f"  {role}: not in the config, not recorded (roles: {', '.join(config.roles)})")
    for words in cautions(use for uses in tools.values() for use in uses):
        print(f"  {words}")
    if not config.roles:
        print("  every role: spans only")
    if not any(config.records(role) for role in config.roles):
        print("  tool: none; only spans and counters are written")
    elif not config.steps:
        print("  steps: none; nothing is recorded until it is asked for")


def _values(file: str, config: Config, tools: Tools, missing: list[str]) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "file": file,
        "enabled": config.enabled,
        **({"overrides": missing} if missing else {}),
        "roles": {role: [use.name for use in uses] for role, uses in tools.items()},
        "cautions": cautions(use for uses in tools.values() for use in uses),
        "faults": [],
    }


def _needs(launch: Launch) -> list[str]:
    """List what a process must be started with."""
    prefix = shlex.join(launch.argv_prefix)
    if len(prefix) > _LONGEST:
        prefix = "the argv_prefix that rlprof.launch gives"
    return [
        *([f"{prefix} before the command"] if prefix else []),
        *(f"{name}={value} in the environment" for name, value in sorted(launch.env.items())),
        *_arguments(launch.engine_args),
        *(f"{name} in Ray's runtime_env" for name in sorted(launch.runtime_env)),
    ]


def _arguments(arguments: Mapping[str, Any]) -> list[str]:
    """List the arguments that an engine needs; by name only, if a value would fill the screen."""
    found = sorted(arguments.items())
    if any(len(repr(value)) > _LONGEST for _, value in found):
        names = ", ".join(name for name, _ in found)
        return [f"{names} (rlprof.launch gives {'them' if len(found) > 1 else 'it'})"]
    return [f"{name}={value!r}" for name, value in found]


def _is_verl(args: argparse.Namespace) -> bool:
    """Whether the file is a config of verl, or was given with options for such a config."""
    return bool(args.overrides or args.convert or is_of_verl(args.file))
