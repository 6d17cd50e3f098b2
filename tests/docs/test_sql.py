"""Every query of docs/sql.md gives the answer below it."""

import json
import re

import duckdb
import pytest

import rlprof
from rlprof_cli import main
from rlprof_report.tables import TABLES
from rlprof_report.tables.steps import STEP
from tests.docs.pages import PAGES, blocks, rows, section, words
from tests.report.tables.folder import EPOCH, S, make

PAGE = PAGES["docs/sql.md"]
VIEWS, *QUERIES = blocks(PAGE, "sql")
ANSWERS = blocks(PAGE, "text")


@pytest.fixture(name="database", scope="module")
def _database(tmp_path_factory):
    """Return a function that asks a connection with the views on an exported run."""
    home = tmp_path_factory.mktemp("sql")
    folder = make(home / "outputs/profile/r1")
    main(["export", str(folder), "--to", "parquet"])

    def ask(query):
        query = query.replace("RUN/", f"{folder}/").replace("'outputs/", f"'{home}/outputs/")
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.execute(VIEWS.text.replace("RUN/", f"{folder}/"))
            found = connection.execute(query)
            return [column[0] for column in found.description], found.fetchall()

    return ask


def shown(head, found):
    """Print an answer as the page does."""

    def cell(value):
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = [head, *(list(map(cell, row)) for row in found)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
             for line in lines]  # fmt: skip
    return "".join(f"{text.rstrip()}\n" for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_a_query_gives_the_answer_shown(database, number):
    """Each query, on the run folder or its Parquet files, prints the answer below it."""
    assert shown(*database(QUERIES[number].text)) == ANSWERS[number].text


def test_the_views_have_the_spans_of_the_reader(tmp_path):
    """The views have each span of the reader once, with step and times, and those of Ray."""
    own = {"kind": "span", "name": "alone", "t0": 11 * S, "t1": 12 * S, "id": 99}
    folder = make(tmp_path / "r1", odd_lines=[json.dumps(own), '{"kind": "sp'])
    when = {"w0": EPOCH + 11 * S, "w1": EPOCH + 12 * S, "step": 1, "occurrence": 0}
    told = {"of": "actor-1-node-a-101", "kind": "phase", "thread": 0, "id": 1, **when}
    lines = [told | {"name": "rollout"}, told | {"name": "reward"}]
    file = folder / "spans/+ray-driver-0-node-a-4600.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = ["process", "name", "step", "start_ns", "end_ns"]

    with duckdb.connect() as connection:
        connection.execute(VIEWS.text.replace("RUN/", f"{folder}/"))
        seen = connection.execute(f"SELECT {', '.join(columns)} FROM spans").fetchall()

    table = rlprof.read(folder).frame("spans").select(columns)
    assert len(seen) == 4 * 16 + 4 * 20 + 2  # rank 1 wrote its rollout itself
    assert sorted(seen) == sorted(tuple(row.values()) for row in table.to_pylist())


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    """The Python of the page counts the spans of a run (without its line for pandas)."""
    (block,) = blocks(PAGE, "python")
    make(tmp_path / "RUN")
    monkeypatch.chdir(tmp_path)
    names = {}

    exec(re.sub(r"^table = .*$", "", block.text, flags=re.MULTILINE), names)  # noqa: S102 -- a page of ours

    assert dict(names["found"]) == {
        "rollout": 16, "ref_log_prob": 16, "update_actor": 16, "request": 40, "trajectory": 40,
        "step 1": 4, "step 2": 4, "step 3": 4, "step 4": 4,
    }  # fmt: skip


@pytest.mark.parametrize("table", [*TABLES, "steps"])
def test_every_column_is_documented(table):
    """The page lists exactly the columns of each table."""
    columns = TABLES.get(table, STEP)
    text = section(PAGE, "The tables").split(f"`{table}`: ")[1].split("\n\n`")[0] + "\n"

    listed = [word for row in rows(text) for word in words(row[0])]

    assert sorted(listed) == sorted(columns)
