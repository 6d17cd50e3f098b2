"""Commands that other distributions offer: found, and kept from harming our own."""

from __future__ import annotations

import sys

import pytest

from rlprof_cli import main
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


def test_nothing_of_it_is_imported_for_our_own(monkeypatch, tmp_path, capsys):
    """`rlprof plugins` costs what it costs without it."""
    module = install(monkeypatch, tmp_path, "greeter", GREET, OFFER)

    main(["plugins"])

    assert module not in sys.modules


def test_it_stands_for_none_of_our_own(monkeypatch, tmp_path, capsys):
    """It is listed; one that is called like one of core's is passed over."""
    install(monkeypatch, tmp_path, "greeter", GREET, OFFER + "ls = {module}\n")

    with pytest.raises(SystemExit):
        main(["--help"])

    listed = " ".join(capsys.readouterr().out.split())
    assert "greet say a word" in listed
    assert "list runs, or what one run has captured" in listed


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (
            "raise RuntimeError('broken')",
            "does not load: RuntimeError: broken; repair or uninstall",
        ),
        ("def add(subparsers): pass", "adds no 'greet'"),
    ],
)
def test_one_that_is_broken_says_why_when_it_is_called(monkeypatch, tmp_path, capsys, module, why):
    """And only then: the list of commands is there all the same."""
    install(monkeypatch, tmp_path, "greeter", module, OFFER)

    listed, code = main([]), main(["greet", "hello", "--loud"])

    told = capsys.readouterr()
    assert (listed, code) == (0, 1)
    assert why in told.err
    assert "greeter" in told.err


def test_one_that_two_offer_is_refused(monkeypatch, tmp_path, capsys):
    """Nobody guesses which is meant."""
    for name in ("greeter", "waver"):
        install(monkeypatch, tmp_path, name, GREET, OFFER)

    code = main(["greet", "hello"])

    error = "rlprof: command 'greet' is offered by greeter and waver; uninstall one\n"
    assert code == 1
    assert capsys.readouterr().err.startswith(error)
