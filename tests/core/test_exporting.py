"""`rlprof export`: a part of a run, the arguments exporters declare, files of other profilers."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

import pytest

import rlprof
from rlprof import Selection, hookimpl, plugins
from rlprof.types import Window
from rlprof_cli import main
from tests.core.distributions import install
from tests.timeline.builder import NOW, RunBuilder

SECOND = 10**9
LIST = """
    import rlprof

    class Lister:
        "Write down what it was given."

        @staticmethod
        def arguments(group):
            group.add_argument("--depth", type=int, default=3, help="how deep to look")
            group.add_argument("--loud", action="store_true")
            group.add_argument("--mark", action="append")

        @rlprof.hookimpl
        def render(self, run, out, options):
            (out / "list.txt").write_text(f"{sorted(options.items())}")
            return [out / "list.txt"]
"""
PLAIN = [("depth", 3), ("loud", False), ("mark", None)]


@pytest.fixture(autouse=True)
def _nothing_by_hand(monkeypatch):
    monkeypatch.setattr(plugins, "_registered", {})


@pytest.fixture
def rlprof_(capsys):
    """Run `rlprof export`; return exit code, stdout, stderr."""

    def run(*argv):
        try:
            code = main(["export", *map(str, argv)])
        except SystemExit as exc:
            code = exc.code
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(name="offer")
def _offer(monkeypatch, tmp_path):
    """Return a function that installs a distribution with one exporter."""

    def offer(distribution="lister", module=LIST, word="list"):
        entry = f"[rlprof.exporters]\n{word} = {{module}}:Lister\n"
        return install(monkeypatch, tmp_path, distribution, module, entry)

    return offer


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """Build a run of two steps, of which the second was recorded."""
    built = RunBuilder(tmp_path / "runs")
    actor = built.process("actor", size=1)
    for number in range(2):
        start = NOW + number * 100 * SECOND
        actor.span("step", str(number), start, start + SECOND, step=number)
    actor.trace(Window(1, 2, "update"), [], NOW)
    header = json.loads((built.path / "run.json").read_text())
    header["owner"]["opened_ns"] = NOW
    (built.path / "run.json").write_text(json.dumps(header))
    return built.path


@pytest.fixture(name="seen")
def _seen():
    """Register an exporter `see`, and return the list of what it was given."""
    given = []

    class See:
        """Keep what it is given."""

        @hookimpl
        def render(self, run):
            given.append(run)

        @hookimpl
        def render_files(self, files, out):
            given.append(files)
            (out / "seen.txt").write_text("seen")
            return [out / "seen.txt"]

    rlprof.register("exporter", "see", See)
    return given


# A part of a run


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], {}),
        (["--step", "1"], {"steps": [1]}),
        (["--step", "1,5-7", "--step", "9"], {"steps": [1, range(5, 8), 9]}),
        (["--role", "actor, critic", "--role", "x"], {"roles": ["actor", "critic", "x"]}),
        (["--window", "1/update,rollout"], {"windows": ["1/update", "rollout"]}),
        (["--only", "torch", "--only", "spans"], {"only": ["torch", "spans"]}),
        (["--from", "0.5"], {"from_ns": NOW + SECOND // 2}),
        (["--from", "100ms", "--until", "2m"],
         {"from_ns": NOW + SECOND // 10, "until_ns": NOW + 120 * SECOND}),
        (["--until", "1.5h", "--from", ".25s"],
         {"from_ns": NOW + SECOND // 4, "until_ns": NOW + 5400 * SECOND}),
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_options_select_a_part(rlprof_, folder, seen, argv, part):
    """Comma or repetition; times count from the beginning of the run."""
    code, out, _ = rlprof_(folder, "--to", "see", *argv)

    assert (code, out) == (0, "see: wrote nothing\n")
    assert [run.selection for run in seen] == [Selection(**part)]


def test_a_name_that_is_of_nothing_is_told_where_others_are(rlprof_, folder, seen):
    """What it was meant for is not there, and the rest of the selection is."""
    argv = ["--role", "actor,actro", "--window", "update,updat", "--only", "torch,tocrh,spans"]

    code, _, err = rlprof_(folder, "--to", "see", *argv)

    assert (code, len(seen)) == (0, 1)
    assert err.splitlines() == [
        f"rlprof: {folder}: has no role 'actro'; it has actor",
        f"rlprof: {folder}: has no window 'updat'; it has 1/update",
        f"rlprof: {folder}: has no 'tocrh'; it has torch, spans, windows",
    ]


def test_nothing_selected_is_told_before_any_exporter_runs(rlprof_, folder, seen):
    """One line, and no folder is made."""
    done = rlprof_(folder, "--to", "see", "--role", "actro")

    assert done == (1, "", f"rlprof: {folder}: has no role 'actro'; it has actor\n")
    assert seen == []
    assert not (folder / "exports").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--step", "x"], "argument --step: expected steps like 3 or 3,5-7, got 'x'"),
        (["--step", "7-5"], "argument --step: expected steps like 3 or 3,5-7, got '7-5'"),
        (["--step", "-1"], "argument --step: expected steps like 3 or 3,5-7, got '-1'"),
        (["--step", "none"], "argument --step: expected steps like 3 or 3,5-7, got 'none'"),
        (["--role", "a,"], "argument --role: expected a name, or several like a,b, got 'a,'"),
        (["--from", "soon"], "argument --from: expected a time like 12.5, 90s, 2m or 1h, got"),
        (["--until", "nan"], "argument --until: expected a time like 12.5, 90s, 2m or 1h, got"),
        (["--until", "9" * 400], "argument --until: expected a time like 12.5, 90s, 2m or 1h, got"),
    ],
)  # fmt: skip
def test_what_selects_nothing_sensible_is_wrong_usage(rlprof_, folder, argv, told):
    """Told with the option it was given to."""
    code, out, err = rlprof_(folder, *argv)

    assert (code, out) == (2, "")
    assert told in err


def test_the_timeline_of_a_part_holds_that_part(rlprof_, folder):
    """The exporter there is sees the part as if it were the run."""
    code, out, err = rlprof_(folder, "--only", "spans", "--step", "1")

    assert (code, err) == (0, "")
    assert "timeline.json.gz" in out


# What exporters declare


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ([], PLAIN),
        (["--depth", "5"], [("depth", 5), *PLAIN[1:]]),
        (["--mark", "a", "--loud", "--mark=b"],
         [("depth", 3), ("loud", True), ("mark", ["a", "b"])]),
    ],
)  # fmt: skip
def test_an_exporter_gets_what_it_has_declared(rlprof_, folder, offer, argv, options):
    """Under the names argparse gives; what was not typed has its default."""
    offer()

    code, _, err = rlprof_(folder, "--to", "list", *argv)

    assert (code, err) == (0, "")
    assert (folder / "exports/list.txt").read_text() == str(options)


def test_help_shows_the_arguments_of_all_exporters(rlprof_, offer):
    """Under the name of each; one that is broken is passed over."""
    offer()
    offer("broken", "1 / 0", "bad")

    code, out, err = rlprof_("--help")

    assert (code, err) == (0, "")
    assert "\nlist:\n  --depth DEPTH" in out
    assert "how deep to look" in out
    assert "broken" not in out


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    "argv",
    [["ls", "."], ["export", ".", "--to", "see"], ["--version"], ["ls", "export"]],
    ids=" ".join,
)
def test_nothing_is_loaded_that_is_not_used(offer, monkeypatch, folder, argv):
    """Another command, or another exporter, costs what it costs without it."""
    module = offer()
    monkeypatch.chdir(folder)

    with suppress(SystemExit):  # --version ends so
        main(argv)

    assert module not in sys.modules


@pytest.mark.parametrize("typed", [["--depth", "5"], ["--depth=5"]])
def test_an_argument_of_an_exporter_that_is_not_named_is_told(rlprof_, folder, offer, seen, typed):
    """With whose it is, and how it is named; nothing runs."""
    offer()

    code, out, err = rlprof_(folder, "--to", "see", *typed)

    assert (code, out, seen) == (2, "", [])
    assert err.endswith(
        "rlprof export: error: argument --depth: belongs to exporter 'list', which --to does not "
        "name; use --to see,list\n"
    )


def test_an_argument_of_nobody_is_told(rlprof_, folder, offer):
    """As any other command tells it."""
    offer()

    code, out, err = rlprof_(folder, "--dpeth", "5")

    assert (code, out) == (2, "")
    assert err.endswith("rlprof export: error: unrecognized arguments: --dpeth 5\n")


def test_an_argument_of_an_exporter_that_does_not_load_says_so(rlprof_, folder, offer):
    """Why it does not load, not that the argument is unknown."""
    offer("broken", "1 / 0", "bad")

    code, out, err = rlprof_(folder, "--to", "bad", "--depth", "5")

    assert (code, out) == (1, "")
    assert err.startswith("rlprof: exporter 'bad' (broken 1.0) does not load: ZeroDivisionError")


def test_an_exporter_that_is_not_there_is_told(rlprof_, folder):
    """As before: with what there is."""
    code, out, err = rlprof_(folder, "--to", "timelime")

    assert (code, out) == (1, "")
    assert "did you mean 'timeline'?" in err


OTHER = LIST.replace('"list.txt"', '"other.txt"')


@pytest.mark.slow
def test_a_flag_that_two_declare_is_refused_only_where_both_are_used(rlprof_, folder, offer):
    """Each works by itself; of the two the second is refused, and both are named."""
    offer()
    offer("other", OTHER, "more")

    assert rlprof_(folder, "--to", "list", "--depth", "5")[0] == 0
    assert rlprof_(folder, "--to", "more", "--depth", "6")[0] == 0
    assert rlprof_(folder, "--help")[0] == 0
    assert "('depth', 6)" in (folder / "exports/other.txt").read_text()
    told = (
        "rlprof: exporter 'more' (other 1.0) declares --depth, as exporter 'list' (lister 1.0) "
        "does; run them one by one\n"
    )
    assert rlprof_(folder, "--to", "list,more") == (1, "", told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declares", "told"),
    [
        ('"--out"', "declares --out, an argument of `rlprof export` itself; it must rename it"),
        ('"--mine", dest="path"',
         "declares path, an argument of `rlprof export` itself; it must rename it"),
        ('"--run"', "declares run, an argument of `rlprof export` itself; it must rename it"),
        ('"word"', "declares arguments wrongly: the following arguments are required: word"),
        ('"word", nargs="?"',
         "declares arguments wrongly: 'word' has no flag; call it --word"),
        ('"--mine", required=True',
         "declares arguments wrongly: the following arguments are required: --mine"),
        ('"--mine", help="100%"', "declares arguments wrongly: ValueError: "),
        ('"--mine", type=int, default="x"',
         "declares arguments wrongly: argument --mine: invalid int value: 'x'"),
        ('"--mine", nope=1', "declares arguments wrongly: TypeError: "),
    ],
)  # fmt: skip
def test_arguments_that_do_not_do_are_told_when_the_exporter_is_used(
    rlprof_, folder, offer, declares, told
):
    """And harm no other: neither its export nor the help."""
    module = f"""
        import rlprof

        class Lister:
            @staticmethod
            def arguments(group):
                group.add_argument({declares})

            @rlprof.hookimpl
            def render(self, run): ...
    """
    offer(module=module)

    code, out, err = rlprof_(folder, "--to", "timeline,list")

    assert (code, out) == (1, "")
    assert not (folder / "exports").exists()
    assert err.startswith(f"rlprof: exporter 'list' (lister 1.0) {told}")
    assert len(err.splitlines()) == 1
    assert rlprof_(folder, "--to", "timeline")[0] == 0
    assert rlprof_("--help")[0] == 0


def test_an_exporter_may_take_no_options(rlprof_, folder, seen):
    """Those that were written before there were any go on."""
    assert rlprof_(folder, "--to", "see")[0] == 0
    assert len(seen) == 1


# Files that rlprof did not make


@pytest.fixture(name="loose")
def _loose(tmp_path):
    """Leave a folder as others leave it."""
    home = tmp_path / "loose"
    for name in (
        "rank0.json", "b/rank1.pt.trace.json.gz", "b/c/x.trace", "x.pftrace", "y.gz", "notes.txt",
        ".hidden.json", ".cache/z.json", "exports/timeline.json.gz", "b/exports/old.json",
        "/".join(["deep"] * 7 + ["in.json"]), "/".join(["deep"] * 8 + ["out.json"]),
    ):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    (home / "folder.json").mkdir()
    os.mkfifo(home / "pipe.json")
    (home / "link.json").symlink_to(home / "rank0.json")
    (home / "up").symlink_to(tmp_path)
    return home


FOUND = ["b/c/x.trace", "b/rank1.pt.trace.json.gz", "/".join(["deep"] * 7 + ["in.json"]),
         "rank0.json", "x.pftrace", "y.gz"]  # fmt: skip


def test_the_files_of_a_folder_are_given_sorted(rlprof_, loose, seen):
    """By their names, eight levels down; no links, nothing hidden, no earlier exports."""
    code, out, err = rlprof_(loose, "--to", "see")

    assert (code, err) == (0, "")
    assert out.startswith(f"see: {loose}/exports/seen.txt (4 B, ")
    assert seen == [[loose / name for name in FOUND]]


def test_where_it_is_written_is_not_read(rlprof_, loose, seen):
    """A second export finds what the first has found."""
    for _ in range(2):
        assert rlprof_(loose, "--to", "see", "--out", loose / "b/c")[0] == 0

    assert seen == [[loose / name for name in FOUND if name != "b/c/x.trace"]] * 2


@pytest.mark.parametrize("name", ["rank0.json", "notes.txt", "link.json"])
def test_a_file_is_given_whatever_it_is_called(rlprof_, loose, seen, name):
    """It was named; what is made of it lies beside it."""
    code, out, _ = rlprof_(loose / name, "--to", "see")

    assert (code, seen) == (0, [[loose / name]])
    assert out.startswith(f"see: {loose}/exports/seen.txt")


def test_nothing_can_be_selected_of_files(rlprof_, loose, seen):
    """No steps and no roles are known of them; each option is named."""
    argv = ["--to", "see", "--step", "1", "--from", "2", "--only", "spans"]

    done = rlprof_(loose, *argv)

    why = "is not a run, so no part can be selected; drop --step, --only, --from"
    assert done == (1, "", f"rlprof: {loose}: {why}\n")
    assert seen == []


def test_an_exporter_without_the_hook_says_so(rlprof_, loose, seen, offer):
    """The others run, the exit code is 1."""
    offer()

    code, out, err = rlprof_(loose, "--to", "list,see")

    assert (code, err) == (1, "rlprof: list: cannot read files that rlprof did not make\n")
    assert "seen.txt" in out


def test_where_no_exporter_reads_files_nothing_is_made(rlprof_, loose, offer):
    """No empty folder is left among somebody's files."""
    offer()

    assert rlprof_(loose, "--to", "list", "--out", loose / "new")[0] == 1
    assert not (loose / "new").exists()


def test_an_exporter_of_files_alone_says_so_of_a_run(rlprof_, folder):
    """The other way round."""

    class Files:
        @hookimpl
        def render_files(self, files): ...

    rlprof.register("exporter", "files", Files)

    assert rlprof_(folder, "--to", "files") == (
        1, "", "rlprof: files: cannot read a run, only files that rlprof did not make\n"
    )  # fmt: skip


def test_an_exporter_that_fails_on_files_stops_no_other(rlprof_, loose, seen):
    """As with runs."""

    class Failing:
        @hookimpl
        def render_files(self):
            raise KeyError("mine")

    rlprof.register("exporter", "failing", Failing)

    code, out, err = rlprof_(loose, "--to", "failing,see")

    assert (code, err) == (1, "rlprof: failing: KeyError: 'mine'\n")
    assert "seen.txt" in out


def test_what_cannot_be_looked_into_is_told(rlprof_, loose, seen, monkeypatch):
    """One folder of somebody else's does not hide the rest."""
    scandir = os.scandir

    def refused(path):
        if path == loose / "b":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)

    code, _, err = rlprof_(loose, "--to", "see")

    assert (code, err) == (0, f"rlprof: {loose}/b: left out: permission denied\n")
    assert seen == [[loose / name for name in FOUND if not name.startswith("b/")]]


@pytest.mark.parametrize("kind", ["empty", "gone", "run.json", "above runs", "pipe"])
def test_what_is_neither_is_told_as_before(rlprof_, folder, tmp_path, seen, kind):
    """A folder with nothing to read, a folder of runs, or one further up."""
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    nothing = (
        "no run.json here, and no file that ends in .json, .gz, .trace, .pftrace; name a run "
        "folder, <run_dir>/<run id>, or one with traces"
    )
    path, told = {
        "empty": (tmp_path / "empty", nothing),
        "gone": (tmp_path / "gone", "is not there; name a run folder, <run_dir>/<run id>"),
        "run.json": (folder / "run.json",
                     "no run.json here; name a run folder, <run_dir>/<run id>"),
        "above runs": (tmp_path, "no run.json here; name a run folder, <run_dir>/<run id>"),
        "pipe": (tmp_path / "pipe", "no run.json here; name a run folder, <run_dir>/<run id>"),
    }[kind]  # fmt: skip

    assert rlprof_(path, "--to", "see") == (1, "", f"rlprof: {path}: {told}\n")
    assert seen == []


def test_a_run_that_is_damaged_is_not_taken_for_files(rlprof_, folder, seen):
    """Its header says what is wrong."""
    (folder / "run.json").write_text("{")

    code, _, err = rlprof_(folder, "--to", "see")

    assert (code, seen) == (1, [])
    assert err.startswith(f"rlprof: {folder}/run.json: cannot be read")
