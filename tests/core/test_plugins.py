"""Plugins and commands of other distributions are found, or refused in plain words."""

import sys
from importlib import metadata

import pytest

import rlprof
from rlprof import PluginError, hookimpl, plugins
from rlprof.distributions import how_to_install
from rlprof.hookspecs import Recorder
from rlprof_cli.contract import misfits
from tests.cases import cases, refused
from tests.core.distributions import CORE, GOOD, install, offer, tool

REPAIR = f"; this is rlprof {CORE}: repair 'prof_bad:X', or install a version that fits"
EARLIER = "is written for an earlier rlprof"
FOLLOW = "follow Migration in rlprof's CHANGELOG.md"


def refusal(kind: plugins.Kind, name: str) -> str:
    return refused(PluginError, plugins.load, kind, name)


@cases(
    "kind, name, message",
    ("tool", "torch",
     f"tool 'torch' is not installed; {how_to_install('rlprof-torch')} (installed: better, good)"),
    ("tool", "goood",
     "tool 'goood' is not installed; did you mean 'good'? (installed: better, good)"),
    ("tool", "motor",
     ("'motor' is an engine, not a tool (installed: better, good); "
      "write roles: {rollout: {engine: motor}}")),
    ("tool", "qqq", "tool 'qqq' is not installed (installed: better, good)"),
)  # fmt: skip
def test_a_missing_plugin_is_refused_with_a_way_out(monkeypatch, kind, name, message):
    """A missing plugin is refused with what to install, the right spelling or its real kind."""
    installed = {"rlprof.tools": ["good", "better"], "rlprof.engines": ["motor"]}

    def entry_points(group, name=None):
        words = [one for one in installed.get(group, ()) if name in (None, one)]
        return [metadata.EntryPoint(one, "x:X", group) for one in words]

    monkeypatch.setattr(metadata, "entry_points", entry_points)

    assert message == refusal(kind, name)


@cases(
    "code, what",
    ("import rlprof_no_such_thing",
     "does not load: ModuleNotFoundError: No module named 'rlprof_no_such_thing'"),
    ("X = 3", "is an int where a class is needed"),
    ("class X:\n    def __init__(self, a): ...",
     "cannot be made: TypeError: X.__init__() missing 1 required positional argument: 'a'"),
    ("class X:\n    def begin(self): ...",
     ("implements no hook; mark its methods with @rlprof.hookimpl "
     "(a tool has configure, start, stop, export, lighter, advise)")),
)  # fmt: skip
def test_a_plugin_that_does_not_load_is_named(monkeypatch, tmp_path, code, what):
    """The error names a plugin that does not load, its distribution, version and fault."""
    more = {"version": "0.9", "requires": ["rlprof-core<0.1"]}
    install(monkeypatch, tmp_path, "prof-bad", code, tool("bad", "X"), **more)

    assert refusal("tool", "bad") == f"tool 'bad' (prof-bad 0.9) {what}{REPAIR}"


def test_a_plugin_that_two_distributions_offer_is_refused(monkeypatch, tmp_path):
    """A plugin that two distributions offer is refused; both are named, neither is imported."""
    one = install(monkeypatch, tmp_path, "prof-one", GOOD, tool("good", "Good"))
    two = install(monkeypatch, tmp_path, "prof-two", GOOD, tool("good", "Good"), version="2.0")

    message = refusal("tool", "good")

    ends = ("prof-one 1.0 and prof-two 2.0", "prof-two 2.0 and prof-one 1.0")
    assert message in [f"tool 'good' is offered by {who}; uninstall one" for who in ends]
    assert not {one, two} & set(sys.modules)


def test_an_unknown_kind_is_refused():
    """`register` refuses an unknown kind of plugin and names the four it knows."""
    told = "register: no kind 'tol'; choose one of tool, engine, exporter, listener"

    assert refused(PluginError, rlprof.register, "tol", "x", Recorder) == told


def made(name, base=object, hooks=None, **members):
    """Make a class with these hooks and members."""
    marked = {one: hookimpl(hook) for one, hook in (hooks or {}).items()}
    return type(name, (base,), marked | members)


Misspelt = made("Misspelt", hooks={"strat": lambda self: None})
AnotherKinds = made("AnotherKinds", hooks={"export": lambda self, run: None})
Defaulted = made("Defaulted", hooks={"start": lambda self, folder=None: None})
Starts = made("Starts", hooks={"start": lambda self: None})
Unmarked = made("Unmarked", Starts, stop=lambda self: None)
Cautious = made("Cautious", Starts, cautions=staticmethod(lambda options: None))
NoPlace = made("NoPlace", Starts, runs_on="proces")
Early = made("Early", Starts, runs_on=property(lambda self: "process"))


@cases(
    "kind, cls, what",
    ("tool", Misspelt, "unknown hook 'strat'"),
    ("tool", AnotherKinds, "{'run'} are declared in the hookimpl but can not be found"),
    ("exporter", AnotherKinds, f"{EARLIER}: export is now render; {FOLLOW}"),
    ("tool", Cautious, f"{EARLIER}: cautions is now in advise; {FOLLOW}"),
    ("tool", Early,
     f"{EARLIER}: runs_on is now in the Ready that configure returns; {FOLLOW}"),
    ("tool", NoPlace, "has runs_on 'proces'; choose one of thread, process, node"),
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_a_plugin_that_core_cannot_call_is_refused(kind, cls, what):
    """Unknown hooks, arguments and places are refused, and so are hooks of an earlier rlprof."""
    plugins.register(kind, "x", cls)

    assert what in refusal(kind, "x").removeprefix(f"{kind} 'x' (registered by hand) ")


@cases(
    "cls, what",
    (Misspelt, ("marks 'strat', which is not a hook; did you mean 'start'? "
               "(a tool has configure, start, stop, export, lighter, advise)")),
    (AnotherKinds, ("takes 'run' in export, which is not given "
                   "(there are: capture, folder, out)")),
    (Defaulted, ("has a default for 'folder' in start, so it never gets a value; "
                "remove the default")),
    (Unmarked, "has a method 'stop' that is never called; mark it with @rlprof.hookimpl"),
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_misfits_of_a_plugin_are_reported_to_its_author(cls, what):
    """`misfits` names hooks, arguments and methods of a plugin that core would not call."""
    assert misfits("tool", cls) == [what]


def test_a_damaged_distribution_is_named(tmp_path, monkeypatch):
    """The error names the distribution whose entry_points.txt cannot be read."""
    offer(tmp_path, "broken", "[rlprof.tools]\nno entry\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginError, match=r"broken: its entry_points.txt cannot be read"):
        plugins.load("tool", "torch")


GREET = """
    def add(subparsers):
        parser = subparsers.add_parser("greet", help="say a word")
        parser.add_argument("word")
        parser.set_defaults(run=run)

    def run(args):
        print(args.word)
        return 3
"""
OFFER = "[rlprof.commands]\ngreet = {module}\n"


def test_an_offered_command_is_listed_and_imported_only_then(monkeypatch, tmp_path, shell):
    """An offered command is imported for its own use and help only, and cannot replace ours."""
    module = install(monkeypatch, tmp_path, "greeter", GREET, OFFER + "ls = {module}\n")

    shell("plugins")
    is_imported = module in sys.modules
    _, out, _ = shell("--help")

    listed = " ".join(out.split())
    assert not is_imported
    assert "list runs, or what one run has captured" in listed
    assert listed.index("export make a") < listed.index("salvage export")
    assert "greet say a word" in listed[listed.index("completion complete") :]


@cases(
    "module, why",
    ("raise RuntimeError('broken')", "does not load: RuntimeError: broken; repair or uninsta"),
    ("def add(subparsers): pass", "adds no 'greet'"),
)
def test_a_broken_command_fails_only_when_it_is_called(monkeypatch, tmp_path, shell, module, why):
    """A broken command of another distribution reports its error only when it is called."""
    install(monkeypatch, tmp_path, "greeter", module, OFFER)

    listed, *_ = shell()
    code, _, err = shell("greet", "hello", "--loud")

    assert (listed, code) == (0, 1)
    assert why in err
    assert "greeter" in err


def test_a_command_that_two_distributions_offer_is_refused(monkeypatch, tmp_path, shell):
    """A command that two distributions offer is refused, and both are named."""
    for name in ("greeter", "waver"):
        install(monkeypatch, tmp_path, name, GREET, OFFER)

    code, _, err = shell("greet", "hello")

    error = "rlprof: command 'greet' is offered by greeter and waver; uninstall one\n"
    assert code == 1
    assert err.startswith(error)
