"""Makes distributions as pip installs them: a module next to a `*.dist-info` folder."""

import sys
from importlib import metadata
from textwrap import dedent
from types import ModuleType

CORE = metadata.version("rlprof-core")

GOOD = """
    from rlprof import hookimpl

    class Good:
        "Record nothing, well."

        @hookimpl
        def start(self, folder):
            return None
"""
"""A module with a valid tool."""


def install(monkeypatch, site, name, module, offers, **more):
    """Install distribution *name* into *site* for this test; return the name of its module."""
    package = name.replace("-", "_")
    (site / f"{package}.py").write_text(dedent(module))
    offer(site, name, dedent(offers).replace("{module}", package), **more)
    monkeypatch.setitem(sys.modules, package, ModuleType(package))  # so that it is undone
    del sys.modules[package]
    monkeypatch.syspath_prepend(str(site))
    return package


def offer(site, name, offers, *, version="1.0", requires=()):
    """Write the metadata that pip leaves for distribution *name* in *site*."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (info / "METADATA").write_text("\n".join([*head, *(f"Requires-Dist: {r}" for r in requires)]))
    (info / "entry_points.txt").write_text(offers)


def tool(word: str, attribute: str) -> str:
    return f"[rlprof.tools]\n{word} = {{module}}:{attribute}\n"
