"""`rlprof export`: a part of a run, options, files of other profilers."""

import os

import pytest

import rlprof
from rlprof import Selection, hookimpl
from rlprof.types import Window
from tests.cases import cases
from tests.core.distributions import install
from tests.timeline.builder import NOW, RunBuilder

SECOND = 10**9
PAGE = "rlprof export --help explains this command\n"
LIST = """
    import rlprof

    class Lister:
        "Write down what it was given."

        @rlprof.hookimpl
        def render(self, run, out, options):
            (out / "list.txt").write_text(f"{sorted(options.items())}")
            return [out / "list.txt"]
"""


@pytest.fixture(name="offer")
def _offer(monkeypatch, tmp_path):
    """Return a function that installs a distribution with one exporter."""

    def offer(distribution="lister", module=LIST, word="list"):
        entry = f"[rlprof.exporters]\n{word} = {{module}}:Lister\n"
        return install(monkeypatch, tmp_path, distribution, module, entry)

    return offer


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """Build a run of two steps, the second of which was recorded."""
    built = RunBuilder(tmp_path / "runs")
    actor = built.process("actor", size=1)
    for number in range(2):
        start = NOW + number * 100 * SECOND
        actor.span("step", str(number), start, start + SECOND, step=number)
    actor.trace(Window(1, 2, "update"), [], NOW)
    return built.path


@pytest.fixture(name="seen")
def _seen():
    """Register an exporter `see`; return the list of what it was given."""
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


@cases(
    "argv, part",
    (["--step", "1,5-7", "--step", "9"], {"steps": [1, range(5, 8), 9]}),
    (["--role", "actor, critic", "--role", "x"], {"roles": ["actor", "critic", "x"]}),
    (["--window", "1/update,rollout", "--only", "torch"],
     {"windows": ["1/update", "rollout"], "only": ["torch"]}),
    (["--from", "100ms", "--until", "2m"],
     {"from_ns": NOW + SECOND // 10, "until_ns": NOW + 120 * SECOND}),
    ids=" ".join,
)  # fmt: skip
def test_the_options_select_a_part(shell, folder, seen, argv, part):
    """The options take commas, repetition and relative times; a part has its own folder."""
    code, out, _ = shell("export", folder, "--to", "see", *argv)

    assert (code, out) == (0, "see: wrote nothing\n")
    (made,) = (folder / "exports").iterdir()
    first = argv[1].split(",")[0].replace("/", "-").replace("100ms", "0.1")
    assert made.name.startswith(f"{argv[0][2:]}-{first}")
    assert [run.selection for run in seen] == [Selection(**part)]


def test_a_name_that_matches_nothing_is_an_error(shell, folder, seen):
    """A name that matches nothing is an error; the rest is exported, if there is any."""
    argv = ["--role", "actor,actro", "--window", "update,updat", "--only", "torch,tocrh,spans"]

    nothing = shell("export", folder, "--to", "see", "--role", "actro")
    made = (folder / "exports").exists()
    code, _, err = shell("export", folder, "--to", "see", *argv)

    told = f"rlprof: {folder}: has no role 'actro'; it has actor\n{PAGE}"
    assert (nothing, made) == ((1, "", told), False)
    assert (code, len(seen)) == (0, 1)
    assert err.splitlines() == [
        f"rlprof: {folder}: has no role 'actro'; it has actor",
        f"rlprof: {folder}: has no window 'updat'; it has 1/update",
        f"rlprof: {folder}: has no 'tocrh'; it has torch, spans, windows",
    ]


@cases(
    "argv, told",
    (["--step", "x"], "argument --step: expected steps like 3 or 3,5-7, got 'x'"),
    (["--role", "a,"], "argument --role: expected a name, or several like a,b, got 'a,'"),
    (["--until", "nan"], "argument --until: expected a time like 12.5, 90s, 2m or 1h, got"),
)  # fmt: skip
def test_a_malformed_selection_is_wrong_usage(shell, folder, argv, told):
    """A malformed selection exits with 2 and names its option."""
    code, out, err = shell("export", folder, *argv)

    assert (code, out) == (2, "")
    assert told in err


def test_an_exporter_gets_the_options_of_the_command(shell, folder, offer):
    """An exporter gets `--align`, typed or not, and an unknown option exits with 2."""
    offer()
    given = []

    for argv in ([], ["--align", "wall"]):
        code, _, err = shell("export", folder, "--to", "list", *argv)
        assert (code, err) == (0, "")
        given.append((folder / "exports/list.txt").read_text())

    assert given == [str([("align", None)]), str([("align", "wall")])]
    assert shell("export", folder, "--depth", "5")[0] == 2


@pytest.fixture(name="loose")
def _loose(tmp_path):
    """Make a folder of traces that other profilers left."""
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


def test_export_of_a_folder_skips_its_outputs_and_takes_any_named_file(shell, loose, seen):
    """Export of a folder skips its own outputs; a file that is named may have any name."""
    for _ in range(2):
        assert shell("export", loose, "--to", "see", "--out", loose / "b/c")[0] == 0

    assert seen == [[loose / name for name in FOUND if name != "b/c/x.trace"]] * 2
    code, out, _ = shell("export", loose / "notes.txt", "--to", "see")
    assert (code, seen[2:]) == (0, [[loose / "notes.txt"]])
    assert out.startswith(f"see: {loose}/exports/seen.txt")


def test_files_of_other_profilers_take_no_selection(shell, loose, seen):
    """Selection options with files of other profilers are an error that names each option."""
    argv = ["--to", "see", "--step", "1", "--from", "2", "--only", "spans"]

    done = shell("export", loose, *argv)

    why = "is not a run, so no part can be selected; drop --step, --only, --from"
    assert done == (1, "", f"rlprof: {loose}: {why}\n{PAGE}")
    assert seen == []


def test_an_exporter_that_fails_or_lacks_the_hook_stops_no_other(shell, folder, loose, seen, offer):
    """An exporter that fails or cannot read files exits with 1; the others still run."""
    offer(module=LIST.replace("(out /", "raise KeyError('mine')\n            (out /", 1))

    failed, _, error = shell("export", folder, "--to", "list", "--to", "see,list")
    code, out, err = shell("export", loose, "--to", "list,see")

    assert (failed, error, len(seen)) == (1, f"rlprof: list: KeyError: 'mine'\n{PAGE}", 2)
    assert (code, err) == (1, f"rlprof: list: cannot read files that rlprof did not make\n{PAGE}")
    assert "seen.txt" in out


@cases(
    "name, told",
    ("empty", ("no run.json here, and no file that ends in .json, .gz, .trace, .pftrace; "
               "name a run folder, <run_dir>/<run id>, or one with traces")),
    ("gone", "is not there; name a run folder, <run_dir>/<run id>"),
    (".", "no run.json here; name a run folder, <run_dir>/<run id>"),
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_a_path_that_is_neither_run_nor_traces_is_an_error(shell, tmp_path, seen, name, told):
    """A missing path, an empty folder or the parent of a folder of runs is an error."""
    (tmp_path / "empty").mkdir()
    path = tmp_path / name

    assert shell("export", path, "--to", "see") == (1, "", f"rlprof: {path}: {told}\n{PAGE}")
    assert seen == []
