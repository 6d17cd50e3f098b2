"""The commands and programs in the docs, run as a reader types them."""

import os
import re

import pytest

import rlprof_cli as cli
from tests.docs.pages import PAGES, ROOT, blocks, sections
from tests.docs.shell import Shell, agree, commands, shape, write
from tests.waiting import python

GUIDES = ("quickstart", "torchrun", "live-capture", "after-a-crash")
README = PAGES["README.md"]
CONSOLES = {
    command: path
    for path, text in PAGES.items()
    for block in blocks(text, "console", "sh")
    for command, _ in commands(re.sub(r"^(?=pip |make )", "$ ", block.text, flags=re.MULTILINE))
}


@pytest.fixture(name="scratch", scope="session")
def _scratch(tmp_path_factory):
    """Return one folder for temporary files, so that the cost of a tool is measured once."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(name="shell")
def _shell(tmp_path, scratch):
    shell = Shell(tmp_path, {"TMPDIR": str(scratch)})
    yield shell
    shell.close()


def follow(shell, text, consoles):
    """Write the files of a page and run the commands of *consoles*; compare their output."""
    for block in blocks(text, mark="file"):
        write(shell.home, block.said, block.text)
    for console in consoles:
        for command, shown in commands(console):
            printed = shell.run(command)
            assert agree(shown, printed), "\n".join([command, *shape(printed)])


def parts():
    """Yield each section with commands, and its page; the first one has no heading."""
    (console,) = (one.text for one in blocks(README, "console") if "train.py" in one.text)
    yield pytest.param(README, f"```console\n{console}```", id="README")
    for guide in GUIDES:
        page = PAGES[f"docs/{guide}.md"]
        for heading, text in ({"": page.partition("\n## ")[0]} | sections(page)).items():
            if blocks(text, "console"):
                yield pytest.param(page, text, id=f"{guide}: {heading}")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "part"), list(parts()))
def test_the_commands_of_a_guide_print_what_it_shows(page, part, shell):
    """The commands of each section, run in an empty folder, print the output shown."""
    files = PAGES["docs/quickstart.md"] + page  # other guides run its train.py

    follow(shell, files, [block.text for block in blocks(part, "console")])


@pytest.mark.parametrize("command", CONSOLES, ids=lambda one: f"{CONSOLES[one]}: {one}")
def test_every_command_shown_exists(command):
    """Every command in the docs parses with its options or is a target of make."""
    words = [word for word in command.rstrip(" &").split() if not word.startswith("RLPROF_")]
    parser = cli.command_line(words[1:])  # with those of other distributions
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    if words[0] == "rlprof":
        assert parser.parse_args(words[1:]).run
    elif words[0] == "make":
        assert words[1] in targets
    else:
        program = words[0].removeprefix("CHECKOUT/.envs/test/bin/")
        assert program in {"pip", "python", "torchrun", "pytest", "cd"}


EXAMPLES = [str(path) for path in sorted((ROOT / "examples").glob("*/src"))]
QUOTED = [block for text in PAGES.values() for block in blocks(text, mark="quoted")]
RUNS = [
    pytest.param(block.said, block.text, id=f"{path}: {block.said}")
    for path, text in PAGES.items()
    for block in blocks(text, "python", mark="runs")
]
UNMARKED = [path for path, text in PAGES.items() if blocks(text, "python", mark="")]
ELSEWHERE = {
    "docs/doctor.md": "tests/doctor/test_documentation.py",
    "core/README.md": "below",
    "docs/loggers.md": "tests/loggers_real/test_recipes.py",
    "docs/sql.md": "tests/docs/test_sql.py",
    "examples/third_party_engine/README.md": "tests/kit/test_examples.py",
}
"""Pages whose programs have a test of their own."""


@pytest.fixture(name="run")
def _run(tmp_path, scratch):
    """Return a function that runs a program as a saved script."""

    def run(program):
        (tmp_path / "program.py").write_text(program)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(EXAMPLES), "TMPDIR": str(scratch)}
        done = python("-W", "error", "program.py", cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_every_quoted_block_is_in_its_file():
    """Every quoted block is part of the file that it names, to the letter."""
    for block in QUOTED:
        quoted = block.text.rstrip("\n")
        assert quoted in (ROOT / block.said).read_text(), f"quote {block.said} anew"


@pytest.mark.slow
@pytest.mark.parametrize(("said", "program"), RUNS)
def test_a_whole_program_prints_what_its_page_says(said, program, run):
    """Each whole program in the docs prints the text that its page gives."""
    assert said in run(program)


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in UNMARKED if path not in ELSEWHERE])
def test_the_code_of_a_page_runs(path, run, tmp_path):
    """The code blocks of a page run as one program, with the files that it shows."""
    for block in blocks(PAGES[path], mark="file"):
        write(tmp_path, block.said, block.text)

    run("\n".join(block.text for block in blocks(PAGES[path], "python", mark="")))


@pytest.mark.slow
def test_the_plugin_of_the_readme_of_core_works(run):
    """The plugin in core/README.md records a whole window."""
    (block,) = blocks(PAGES["core/README.md"], "python")
    rest = """
with rlprof.open({"tool": "mine", "steps": [1], "roles": {"actor": {}}}) as prof:
    prof.step(1)
    with prof.phase("rollout"):
        pass
(capture,) = rlprof.read(prof.run_dir).captures
print(capture.state, (prof.run_dir / capture.artifacts[0].path).read_text())
"""

    printed = run(block.text + rest)

    assert printed.split() == ["whole", "1/rollout"]
