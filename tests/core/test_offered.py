"""Commands that other distributions offer: found, and kept from harming our own."""

import sys

import pytest

from tests.core.distributions import install

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
    assert "greet say a word" in listed
    assert "list runs, or what one run has captured" in listed


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("raise RuntimeError('broken')", "does not load: RuntimeError: broken; repair or uninsta"),
        ("def add(subparsers): pass", "adds no 'greet'"),
    ],
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
