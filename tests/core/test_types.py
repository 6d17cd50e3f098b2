import ast
from pathlib import Path

import rlprof
from rlprof.types import Capture, Target, Window
from tests.cases import cases


@cases(
    "target, window, stem",
    (Target("actor", 3, 8), Window(7, 8), "actor_rank3-of-8_step7_step_pid42"),
    (
        Target("actor", 3, 8, coordinates={"tp": 1, "p/p": 0}),
        Window(7, 10),
        "actor_rank3-of-8_tp1_p-p-e9a9f8130_step7-9_step_pid42",
    ),
    (Target("rollout", replica=2), Window(7, 8, "gen", 1), "rollout_replica2_step7_gen.1_pid42"),
    ids=["rank", "coordinates", "replica"],
)
def test_a_stem_tells_a_file_from_all_others(target, window, stem):
    """A file that is moved out of its folder still says whose it is."""
    capture = Capture("run", target, window, "torch", host="h", pid=42)

    assert stem == capture.stem


def test_type_checkers_see_the_names_there_are():
    """The stub beside the package promises the same names, and imports each from somewhere."""
    stub = ast.parse(Path(rlprof.__file__).with_suffix(".pyi").read_text())
    imported = {
        alias.asname or alias.name
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (promised,) = (
        ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)
    )

    assert sorted(promised) == sorted(rlprof.__all__)
    assert set(promised) <= imported
    assert all(hasattr(rlprof, name) for name in imported)
