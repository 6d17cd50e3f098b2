"""What distributions offer, plugins and commands: found, and refused in words of ours."""

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
def test_what_is_not_there_is_told_with_what_to_do(monkeypatch, kind, name, message):
    """Install it, spell it, or take it for what it is."""
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
def test_who_does_not_fit_is_named_with_all_it_takes_to_repair(monkeypatch, tmp_path, code, what):
    """The plugin, its distribution and version, what it asks of core, what is wrong."""
    more = {"version": "0.9", "requires": ["rlprof-core<0.1"]}
    install(monkeypatch, tmp_path, "prof-bad", code, tool("bad", "X"), **more)

    assert refusal("tool", "bad") == f"tool 'bad' (prof-bad 0.9) {what}{REPAIR}"


def test_what_two_distributions_offer_is_neithers(monkeypatch, tmp_path):
    """Nobody is chosen by chance: both are named, and neither is imported."""
    one = install(monkeypatch, tmp_path, "prof-one", GOOD, tool("good", "Good"))
    two = install(monkeypatch, tmp_path, "prof-two", GOOD, tool("good", "Good"), version="2.0")

    message = refusal("tool", "good")

    ends = ("prof-one 1.0 and prof-two 2.0", "prof-two 2.0 and prof-one 1.0")
    assert message in [f"tool 'good' is offered by {who}; uninstall one" for who in ends]
    assert not {one, two} & set(sys.modules)


def test_an_unknown_kind_is_refused():
    """There are three kinds of plugins, and they are named."""
    told = "register: no kind 'tol'; choose one of tool, engine, exporter, listener"

    assert refused(PluginError, rlprof.register, "tol", "x", Recorder) == told


def made(name, base=object, hooks=None, **members):
    """Make a class with these hooks and other members."""
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
def test_what_core_could_not_call_is_refused(kind, cls, what):
    """Hooks that do not exist, arguments that are not given, and the contract before this one."""
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
def test_an_author_is_told_what_would_not_be_called(cls, what):
    """`rlprof plugins` and the kit say what is wrong in the words of the contract."""
    assert misfits("tool", cls) == [what]


def test_a_damaged_distribution_is_named(tmp_path, monkeypatch):
    """Its entry_points.txt makes importlib give up on all; the error says whose it is."""
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


def test_it_stands_for_none_of_our_own_and_costs_them_nothing(monkeypatch, tmp_path, shell):
    """It is listed, and imported for nothing else; one called like one of core's is passed over."""
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
def test_one_that_is_broken_says_why_when_it_is_called(monkeypatch, tmp_path, shell, module, why):
    """And only then: the list of commands is there all the same."""
    install(monkeypatch, tmp_path, "greeter", module, OFFER)

    listed, *_ = shell()
    code, _, err = shell("greet", "hello", "--loud")

    assert (listed, code) == (0, 1)
    assert why in err
    assert "greeter" in err


def test_one_that_two_offer_is_refused(monkeypatch, tmp_path, shell):
    """Nobody guesses which is meant."""
    for name in ("greeter", "waver"):
        install(monkeypatch, tmp_path, name, GREET, OFFER)

    code, _, err = shell("greet", "hello")

    error = "rlprof: command 'greet' is offered by greeter and waver; uninstall one\n"
    assert code == 1
    assert err.startswith(error)
