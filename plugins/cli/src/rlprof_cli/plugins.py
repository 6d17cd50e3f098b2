"""`rlprof plugins`: list the installed plugins, their distributions, and whether they fit core."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from rlprof import plugins
from rlprof.distributions import KNOWN, how_to_install
from rlprof.errors import PluginError
from rlprof.rundir import as_json
from rlprof_cli.arguments import add_json
from rlprof_cli.contract import misfits
from rlprof_cli.offers import offers
from rlprof_cli.table import table

if TYPE_CHECKING:
    import argparse


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "plugins",
        help="list the installed tools, engines and exporters",
        description="List every plugin of the installed distributions. The command imports each "
        "of them to see whether it fits; a run imports only those its config names. Exit code 1: "
        "a plugin does not fit.",
    )
    add_json(parser, "a list of the plugins")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, and what is wrong below it."""
    rows, faults, values = [], [], []
    for offer in offers():
        try:
            plugin = plugins.load(offer.kind, offer.name)
            note = next(iter((plugin.__doc__ or "").strip().splitlines()), "")
            fault = "; ".join(f"{offer} {what}" for what in misfits(offer.kind, plugin))
        except PluginError as exc:
            fault = str(exc)
        fits = "NO" if fault else "yes"
        if fault:
            note = "see below"
            if fault not in faults:
                faults.append(fault)
        origin = f"{offer.distribution} {offer.version}" if offer.entry else "by hand"
        rows.append((offer.kind, offer.name, origin, fits, note))
        values.append({
            "kind": offer.kind, "name": offer.name, "distribution": offer.distribution,
            "version": offer.version, "fits": not fault, "what": "" if fault else note,
            "fault": fault,
        })  # fmt: skip
    if args.json:
        print(as_json(values, indent=2))
        return 1 if faults else 0
    print(f"rlprof {plugins.core_version() or '(not installed)'}\n")
    if not rows:
        print("no plugins are installed; install what you use, for example:")
        print(f"  {how_to_install('rlprof-torch')}")
        return 0
    width = shutil.get_terminal_size((0, 0)).columns  # in a pipe, a row stays one line for grep
    print(table(("KIND", "NAME", "FROM", "FITS", "WHAT"), rows, width=width))
    for fault in faults:
        print(f"\n{fault}")
    there = {(offer.kind, offer.name) for offer in offers()}
    missing = [f"{key[1]} ({dist})" for key, dist in KNOWN.items() if key not in there]
    if missing:
        print("\nnot installed: " + ", ".join(missing))
    return 1 if faults else 0
