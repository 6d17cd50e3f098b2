"""`rlprof doctor` as a user runs it, and tools that misbehave on request."""

import os
import subprocess
import sys

import attrs

from tests.core.distributions import install, tool

TOOL = '''
    """A tool that does whatever its options say."""
    import ctypes, os, sys, time
    import attrs
    from rlprof import Artifact, CaptureError, Launch, hookimpl

    @attrs.frozen
    class Options:
        goes: str = ""
        level: int = 1
        prefix: tuple[str, ...] = ()

    def misbehave(goes, hook):
        if goes == f"{hook}:segfault":
            ctypes.string_at(0)
        if goes == f"{hook}:hang":
            time.sleep(600)
        if goes == f"{hook}:hold":
            ctypes.PyDLL(None).sleep(600)  # with the interpreter's lock
        if goes == f"{hook}:exit":
            os._exit(3)
        if goes == f"{hook}:raise":
            raise ValueError(f"{hook} went wrong")
        if goes == f"{hook}:refuse":
            raise CaptureError(f"tool: {hook} has no such device; use another")

    class Recording:
        applied = {}
        unsupported = {"level": "there is one level here", "colour": "it is grey here"}

    class Tool:
        "Do what is asked."
        Options = Options

        @hookimpl
        def configure(self, place, options):
            self.options = options
            misbehave(options.goes, place)
            if place == "launch":
                return Launch(env={"BORN_WITH": "it"}, argv_prefix=options.prefix)

        @hookimpl
        def start(self, folder):
            misbehave(self.options.goes, "start")
            (folder / "raw.txt").write_text(os.environ.get("BORN_WITH", "nothing"))
            return Recording() if self.options.goes == "unsupported" else None

        @hookimpl
        def stop(self):
            misbehave(self.options.goes, "stop")

        @hookimpl
        def export(self, capture, folder, out):
            misbehave(capture.options.get("goes"), "export")
            (out / "made.txt").write_text((folder / "raw.txt").read_text())
            return [Artifact("made.txt", kind="files", format="text", events=7)]

    class Anywhere(Tool):
        runs_on = "process"

    class Sampled(Tool):
        @staticmethod
        def sample(rounds):
            misbehave(os.environ.get("SAMPLE", ""), "sample")
'''


def install_tool(monkeypatch, site, *, name="rlprof-mad", text=TOOL, offers=None, **more):
    """Install a distribution that `rlprof doctor` and its children find; return its module."""
    offers = (
        offers or tool("mad", "Tool") + "anywhere = {module}:Anywhere\nsampled = {module}:Sampled\n"
    )
    site.mkdir()
    module = install(monkeypatch, site, name, text, offers, **more)
    monkeypatch.setenv("PYTHONPATH", str(site))
    return module


@attrs.frozen
class Told:
    code: int
    text: str
    errors: str

    def __getitem__(self, level):
        lines = self.text.splitlines()
        return [line[6:] for line in lines if line.startswith(f"{level:<4}  ")]


def doctor(*args, wrap=(), env=None, **more):
    argv = [*wrap, sys.executable, "-m", "rlprof", "doctor", *map(str, args)]
    how = {"env": os.environ | (env or {}), "timeout": 240, **more}
    done = subprocess.run(argv, capture_output=True, text=True, **how)
    return Told(done.returncode, done.stdout, done.stderr)
