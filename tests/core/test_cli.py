import json
import os
import re
import subprocess
import sys
from textwrap import dedent

import attrs
import pytest

import rlprof
from rlprof import Advice, hookimpl, plugins
from rlprof.distributions import KNOWN, how_to_install
from rlprof.rundir import Here
from rlprof.types import Launch, Target
from rlprof_cli import COMMANDS
from rlprof_cli.table import table
from tests.cases import cases
from tests.core import authors
from tests.core.distributions import CORE, GOOD, install, tool
from tests.core.steps import record
from tests.core.test_reader import Folder, beginning
from tests.fakes import engines, tools

PAGE = "rlprof export --help explains this command\n"
CONFIG = """\
    tool: torch
    steps: 2-3
    roles:
      actor: {ranks: [0, 7], phases: [rollout, update]}
      critic: {ranks: all}
"""


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "profile.yaml"
    file.write_text(dedent(CONFIG))
    return file


def lines(text: str) -> str:
    return dedent(text).removeprefix("\n")


def test_every_command_explains_itself(shell):
    """The help of each command shows its usage and an explanation in at most 100 columns."""
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        code, out, err = shell(name, "--help")

        assert (code, err) == (0, "")
        assert f"usage: rlprof {name} [-h]" in " ".join(out.split())
        assert len(out.split()) > 40
        assert max(map(len, out.splitlines())) <= 100


@cases(
    "argv, message",
    (["chekc"], "rlprof: error: no command 'chekc'; did you mean 'check'?"),
    (["check"], "rlprof check: error: the following arguments are required: FILE"),
    (["plan", "p.yaml", "--like", "run", "--window-s", "1"],
     "rlprof plan: error: argument --window-s: not allowed with argument --like"),
    (["ls", "--fils"], "rlprof ls: error: unrecognized arguments: --fils; did you mean '--fil"),
    (["ls", "--step"], "rlprof ls: error: unrecognized arguments: --step\n"),
    (["--nope"], "rlprof: error: unrecognized arguments: --nope"),
)  # fmt: skip
def test_wrong_usage_exits_with_2(shell, argv, message):
    """Wrong usage prints the command's usage, the error and the help command on stderr."""
    code, out, err = shell(*argv)

    assert (code, out) == (2, "")
    assert err.startswith(f"usage: {message.partition(': error')[0]} [-h]")
    assert message in err
    named = message.partition(": error")[0]
    lists = "lists all commands" if named == "rlprof" else "explains this command"
    assert err.endswith(f"{named} --help {lists}\n")


def test_a_command_that_is_not_installed_names_its_distribution(shell, monkeypatch):
    """A known command whose distribution is missing prints how to install it."""
    monkeypatch.setattr("rlprof_cli.add_offered", lambda *_: None)

    what = f"no command 'view' is installed; {how_to_install('rlprof-timeline')}"
    assert what in shell("view")[2]


@pytest.mark.slow
@cases(
    "ending, told",
    ("prof.close()", ["has ended.", "rlprof export --to report "]),
    ("os.kill(os.getpid(), 9)", ["died.", "rlprof ls latest "]),
)
def test_rlprof_alone_shows_the_latest_run(shell, tmp_path, monkeypatch, ending, told):
    """`rlprof` alone shows how to record a first run, then the latest run and the next command."""
    monkeypatch.chdir(tmp_path)
    code, out, err = shell()
    assert (code, err) == (0, "")
    assert "no run in outputs/profile" in out
    assert "RLPROF_CONFIG=always python train.py" in out
    program = (
        "import os, time, rlprof\nprof = rlprof.open('always')\nprof.step(1)\n"
        "while not (prof.manifest.exists() and prof.manifest.stat().st_size):\n"
        f"    time.sleep(0.01)\n{ending}"
    )
    subprocess.run([sys.executable, "-c", program], check=False, timeout=60)

    code, out, _ = shell()

    assert code == 0
    assert next((tmp_path / "outputs/profile").iterdir()).name in out
    assert [words for words in told if words not in out] == []


def test_states_have_colours_only_on_a_terminal(monkeypatch):
    """Tables have colour codes on a terminal only, and not where NO_COLOR is set."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    piped = table(("RUN", "STATE"), [("a", "died")])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = table(("RUN", "STATE"), [("a", "died")])
    monkeypatch.setenv("NO_COLOR", "1")

    assert table(("RUN", "STATE"), [("a", "died")]) == piped == "RUN  STATE\na    died"
    assert shown == "RUN  STATE\na    \x1b[31mdied \x1b[0m"


def test_a_shell_completes_every_command(shell):
    """The completion scripts name our commands and those of other distributions."""
    for language in ("bash", "zsh", "fish"):
        code, out, err = shell("completion", language)

        assert (code, err) == (0, "")
        assert [name for name in ("capture", "export", "why") if name not in out] == []


def test_verbose_shows_where_an_error_was_raised(shell, tmp_path):
    """`-v` prints the traceback above the error, before or after the command."""
    _, _, bare = shell("ls", tmp_path / "nope")
    _, _, after = shell("ls", "-v", tmp_path / "nope")
    _, _, before = shell("-v", "ls", tmp_path / "nope")

    assert "Traceback" not in bare
    assert after.startswith("Traceback")
    assert after.endswith(bare)
    assert before == after


def test_the_version_is_that_of_the_distribution(shell):
    """`rlprof --version` prints the version of rlprof-core."""
    assert shell("--version") == (0, f"rlprof {CORE}\n", "")


@pytest.mark.slow
def test_a_closed_pipe_is_no_error():
    """A command ends quietly with 0 when the reader of its output has gone (`| head -1`)."""
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "rlprof", "plugins"],
        stdout=writer, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writer)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_unreadable_or_unwritable_path_is_one_line(shell, tmp_path, monkeypatch):
    """A path that cannot be read or written is one line on stderr; --out avoids the run folder."""
    run_folder = Folder(tmp_path / "run").path
    access, exports, below = os.access, run_folder / "exports", tmp_path / "file" / "below"
    (tmp_path / "file").write_text("")
    exports.mkdir()

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", str(run_folder))

    found = [shell("export", run_folder, "--out", below)]
    monkeypatch.setattr(os, "access", lambda path, mode: path != exports and access(path, mode))
    found.append(shell("export", run_folder))
    code, *_ = shell("export", run_folder, "--out", tmp_path / "out")
    monkeypatch.setattr("rlprof_cli.export.read", refused)
    found.append(shell("export", run_folder))

    other = "name a folder that you can write to: --out DIR"
    told = [
        f"{below}: cannot be made: not a directory; {other}",
        f"{exports}: cannot be written to; {other}",
        f"{run_folder}: permission denied",
    ]
    assert found == [(1, "", f"rlprof: {words}\n{PAGE}") for words in told]
    assert code == 0


def test_check_lists_what_a_launcher_must_set(shell, file):
    """`check` lists the command prefix, variables and engine arguments that a launcher must set."""

    class Needy:
        @hookimpl
        def configure(self, place):
            env, ray = {"B": "2", "A": "1"}, {"nsight": {}}
            return Launch(env=env, argv_prefix=("nsys", "launch"), runtime_env=ray)

    plugins.register("tool", "needy", Needy)
    plugins.register("engine", "motor", engines.Motor)
    file.write_text("roles: {actor: {tool: needy}, rollout: {engine: motor, tool: []}}")

    code, out, _ = shell("check", file)

    assert code == 0
    assert out == lines(f"""
        {file}: fine
          actor: needy; start its processes with nsys launch before the command, A=1 in the environment, B=2 in the environment, nsight in Ray's runtime_env
          rollout: engine motor; start the engine with speed=1
          steps: none; nothing is recorded until it is asked for
    """)  # noqa: E501


def careful(found):
    """Make a tool whose advise hook returns *found* of its options."""

    class Careful:
        @hookimpl
        def start(self): ...

        @hookimpl
        def advise(self, options):
            return found(options)

    return Careful


CAUTIOUS = {
    "careful": careful(lambda _: [Advice("its files hold keys"), Advice("it is\nslow", "hz")]),
    "once": careful(lambda _: "mind the gap"),
    "vain": careful(lambda options: options.no_such),
}
RAISED = "advise raised"
CAUTIONS = [
    "caution, careful: its files hold keys",
    "caution, careful: hz: it is slow",
    f"caution, once: {RAISED} TypeError: it must return a list of rlprof.Advice, got 'm' in it",
    f"caution, vain: {RAISED} AttributeError: 'NoOptions' object has no attribute 'no_such'",
]


def test_check_and_plan_print_the_cautions_of_plugins(shell, file):
    """`check` and `plan` print each caution once; an advise hook that raises is one, too."""
    for name, cls in CAUTIOUS.items():
        plugins.register("tool", name, cls)
    file.write_text("{tool: [careful, once, vain], steps: [1], roles: {actor: {}, critic: {}}}")

    code, out, err = shell("check", file)
    planned = shell("plan", file, "--steps", "1-1")

    assert (code, err) == (0, "")
    assert out.splitlines()[3:] == [f"  {words}" for words in CAUTIONS]
    assert (planned[0], planned[1].splitlines()[-4:], planned[2]) == (0, CAUTIONS, "")
    assert "caution" not in shell("plan", file, "--steps", "1-1", "--no-estimate")[1]


def test_check_of_one_role_needs_only_its_plugins(shell, file):
    """`check --role` needs the plugins of that role only and notes a role the config lacks."""
    file.write_text("steps: [2]\nroles: {actor: {tool: torch}, rollout: {tool: missing}}")

    code, out, err = shell("check", file, "--role", "actor", "--role", "critic")

    assert (code, err) == (0, "")
    assert out == lines(f"""
        {file}: fine
          actor: torch
          critic: not in the config, not recorded (roles: actor, rollout)
    """)
    assert shell("check", file)[0] == 1


@cases(
    "join, steps, windows",
    ("false", "0-8", ["3", "4", "5"]),
    ("false", "3,5-999", ["3", "5", "999"]),
    ("true", None, ["3-5", "999"]),
    ("true", "4-999", ["999"]),
)
def test_plan_shows_windows_of_steps(shell, file, join, steps, windows):
    """In continuous mode, `plan` shows one window per step or joined stretch in the range."""
    words = f"mode: continuous, join_steps: {join}, steps: [3-5, 999], roles: {{a: {{}}}}"
    file.write_text(f"{{tool: torch, {words}}}")

    code, out, _ = shell("plan", file, "--no-estimate", *(["--steps", steps] if steps else []))

    assert code == 0
    rows = out.partition("WINDOWS\n")[2].partition("\n\n")[0].splitlines()
    assert windows == [row.split()[-1] for row in rows]


@cases(
    "config, folders",
    ("tool: torch\nsteps: [7]\nmode: continuous\nroles: {a: {}}",
     "step_000007/step/<role>_<rank>_of_<world>/"),
    ("steps: [7]\nroles: {r: {engine: mini}}", "step_000007/<phase>/<role>_replica_<n>/"),
    ("tool: torch\nsteps: [7]\nroles: {a: {}, r: {engine: mini}}",
     "step_000007/<phase>/<role>_<rank>_of_<world>/ or <role>_replica_<n>/"),
)  # fmt: skip
def test_plan_names_the_folders_of_the_captures(shell, file, config, folders):
    """`plan` names the folder of the first step, with the ranks and replicas of the roles."""
    file.write_text(config)

    code, out, _ = shell("plan", file, "--no-estimate")

    assert code == 0
    assert f"written to outputs/profile/<run id>/{folders}" == out.splitlines()[-1]


def test_a_role_without_tools_has_no_window(shell, file):
    """A role without tools is shown as `spans only` by `check` and has no line in `plan`."""
    roles = "{actor: {phases: [update]}, agent: {tool: []}}"
    file.write_text(f"tool: torch\nsteps: [1]\nroles: {roles}")

    checked, said, _ = shell("check", file)
    code, out, _ = shell("plan", file, "--steps", "1-2", "--no-estimate")

    assert (checked, code) == (0, 0)
    assert "  actor: torch\n  agent: spans only\n" in said
    assert "1/update" in out
    assert "agent" not in out


def test_plan_without_any_window(shell, file):
    """`plan` reports a range without windows, or a config that is off, and exits with 0."""
    said = "mode discrete, steps 2-3; looking at 5-9\n\nnothing is recorded in these steps\n"
    assert shell("plan", file, "--steps", "5-9") == (0, said, "")
    file.write_text(dedent(CONFIG) + "enabled: false\n")
    assert (0, f"{file}: off (enabled: false)\n", "") == shell("plan", file)
    assert (0, f"{file}: fine, and off (enabled: false)\n", "") == shell("check", file)


def test_plugins_marks_broken_plugins_and_names_missing_ones(shell, monkeypatch, tmp_path):
    """`plugins` marks a broken plugin, names missing ones and wraps at the terminal's width."""
    monkeypatch.setitem(KNOWN, ("tool", "later"), "rlprof-later")
    install(monkeypatch, tmp_path, "prof-bad", "raise RuntimeError('no')", tool("bad", "X"),
            requires=["rlprof>=9"])  # fmt: skip
    install(monkeypatch, tmp_path, "prof-good", GOOD, tool("good", "Good"))

    code, out, err = shell("plugins")

    assert (code, err) == (1, "")
    repair = f"this is rlprof {CORE}: repair 'prof_bad:X', or install a version that fits"
    assert {
        "tool      bad           prof-bad 1.0           NO    see below",
        "tool      good          prof-good 1.0          yes   Record nothing, well.",
        f"tool 'bad' (prof-bad 1.0) does not load: RuntimeError: no; {repair}",
        "not installed: later (rlprof-later)",
    } <= {*out.splitlines()}
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, shell("plugins")[1].split("\n\n")[1].splitlines())) in range(75, 81)


def test_ls_of_runs_lists_damaged_and_empty_runs(shell, tmp_path):
    """`ls` lists damaged and empty runs next to others; `ls` of the damaged one is an error."""
    config = {"run_dir": str(tmp_path), "tool": "none", "roles": {"actor": {}}}
    with rlprof.open(config, role="actor") as prof:
        prof.step(1)
    bad, empty = (Folder(tmp_path / name).path for name in ("bad", "empty"))
    (bad / "run.json").write_text("{")

    code, out, err = shell("ls", tmp_path)
    every = json.loads(shell("ls", tmp_path, "--json")[1])
    run = json.loads(shell("ls", prof.run_dir, "--json")[1])

    assert (code, err) == (0, "")
    head, *rows = [line.split() for line in out.splitlines()]
    assert head == ["RUN", "OPENED", "STATE", "PROCESSES", "CAPTURES", "SIZE"]
    states = {row[0]: row[1:] for row in rows}
    assert states[str(bad)] == ["-", "unreadable", "-", "-", "-"]
    assert states[str(empty)][2:] == ["empty", "0", "0", "0", "B"]
    assert {one["path"]: one["state"] for one in every} == {
        str(prof.run_dir): "ended", str(bad): "unreadable", str(empty): "empty",
    }  # fmt: skip
    assert [run["path"], run["state"], run["captures"]] == [str(prof.run_dir), "ended", []]
    assert run["processes"][0]["target"]["role"] == "actor"
    assert "nothing was captured; the config asks for spans" in shell("ls", prof.run_dir)[1]
    code, out, err = shell("ls", bad)
    assert (code, out) == (1, "")
    assert err.startswith(f"rlprof: {bad}/run.json: cannot be read: ")


def test_ls_names_the_process_that_died_first(shell, tmp_path):
    """`ls` sorts dead processes by their last clock reading and shows that time."""
    folder, dead = Folder(tmp_path / "a-run"), attrs.evolve(Here.now(), pid=2**22 + 1)
    for rank, seconds in enumerate((30, 10, 20)):
        own, clock = beginning(Target("actor", rank, 3), dead)
        clock["realtime_ns"] += seconds * 10**9
        folder.write(own, clock, name=f"actor-{rank}")

    died = re.findall(r"actor (\d)/3 .* after \d\d:\d\d:(\d\d)", shell("ls", folder.path)[1])
    assert died == [("1", "16"), ("2", "26"), ("0", "36")]


def test_commands_print_json(shell, tmp_path):
    """`--json` prints the check, the plan, the plugins and the faults of a config as values."""
    config = tmp_path / "a.yaml"
    config.write_text("{tool: none, steps: [2], roles: {actor: {tool: fake}}}")
    tools.register()

    good = json.loads(shell("check", config, "--json")[1])
    plan = json.loads(shell("plan", config, "--json")[1])
    offers = json.loads(shell("plugins", "--json")[1])
    config.write_text("{tool: none, stpes: [2]}")
    wrong = [shell("check", one)[2] for one in (config, tmp_path)]
    code, out, err = shell("check", config, "--json")

    assert [good["roles"], good["faults"]] == [{"actor": ["fake"]}, []]
    assert plan == [
        {"step": 2, "role": "actor", "ranks": ["0"], "tools": ["fake"],
         "windows": ["one per outermost phase"]}
    ]  # fmt: skip
    fake = next(one for one in offers if one["name"] == "fake")
    assert (fake["kind"], fake["fits"]) == ("tool", True)
    assert (code, err, len(json.loads(out)["faults"])) == (1, "", 1)
    pages = [one.partition("\n")[2] for one in wrong]
    assert [one[:20] for one in pages] == ["rlprof check --keys ", "rlprof check --help "]


@pytest.mark.slow
def test_ls_prints_the_command_of_an_artifact_once(shell, config, tmp_path):
    """`ls` prints the command that shows a tool's files once, with the quoted run folder."""
    plugins.register("tool", "named", authors.NamesCommand)
    prof = record(config(run_dir=str(tmp_path / "a run"), tool="named"), range(2))

    _, out, _ = shell("ls", prof.run_dir)

    assert out.count("to look at it:") == 1
    assert out.endswith(f"to look at it:\n  look '{prof.run_dir}'/step\n")
