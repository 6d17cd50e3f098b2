"""The commands of the README and the quickstart, typed as a reader types them."""

from __future__ import annotations

import re

import pytest

import rlprof_cli as cli
from tests.docs.pages import PAGES, ROOT, blocks, sections
from tests.docs.shell import Shell, agree, commands, shape, write
from tests.kit.sites import install

GUIDES = ("quickstart", "torchrun", "live-capture", "after-a-crash")
README = PAGES["README.md"]
CONSOLES = {
    command: path
    for path, text in PAGES.items()
    for block in blocks(text, "console", "sh")
    for command, _ in commands(re.sub(r"^(?=pip |make )", "$ ", block.text, flags=re.MULTILINE))
}
ENGINE = "pip install examples/third_party_engine"


@pytest.fixture(name="shell")
def _shell(tmp_path, scratch):
    """Return a shell in an empty folder."""
    shell = Shell(tmp_path, {"TMPDIR": str(scratch)})
    yield shell
    shell.close()


def follow(shell, text, consoles):
    """Write the files of a page, run the commands of *consoles*, compare what they print."""
    for block in blocks(text, mark="file"):
        write(shell.home, block.said, block.text)
    for console in consoles:
        for command, shown in commands(console):
            printed = shell.run(command)
            assert agree(shown, printed), "\n".join([command, *shape(printed)])


def parts():
    """Give each part that has commands, with its page; the first part has no heading."""
    for guide in GUIDES:
        page = PAGES[f"docs/{guide}.md"]
        for heading, text in ({"": page.partition("\n## ")[0]} | sections(page)).items():
            if blocks(text, "console"):
                yield pytest.param(page, text, id=f"{guide}: {heading}")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "part"), list(parts()))
def test_a_guide_is_what_happens(page, part, shell, tmp_path):
    """Typed into an empty folder, the commands of each section print what is shown there."""
    if ENGINE in part:
        site = install(tmp_path / "site", ROOT / "examples/third_party_engine")
        shell.env["PYTHONPATH"] = site["PYTHONPATH"]

    follow(shell, page, [block.text for block in blocks(part, "console")])


@pytest.mark.slow
def test_the_readme_is_what_happens(shell):
    """Its program, its config and its commands give the tables shown there."""
    (console,) = (one.text for one in blocks(README, "console") if "train.py" in one.text)

    follow(shell, README, [console])


@pytest.mark.parametrize("command", CONSOLES, ids=lambda one: f"{CONSOLES[one]}: {one}")
def test_every_command_shown_exists(command):
    """Each command that some page shows has the options it is shown with, or is made by make."""
    words = [word for word in command.rstrip(" &").split() if not word.startswith("RLPROF_")]
    parser = cli.command_line(words[1:])  # with what the exporters it names declare
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    if words[0] == "rlprof":
        assert parser.parse_args(words[1:]).run
    elif words[0] == "make":
        assert words[1] in targets
    else:
        program = words[0].removeprefix("CHECKOUT/.envs/test/bin/")
        assert program in {"pip", "python", "torchrun", "pytest", "cd"}
