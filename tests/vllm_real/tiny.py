"""The language model of examples/ray_rl, which is small enough for two cores."""

from examples.ray_rl.tiny_model import QUIET, SMALL, build

__all__ = ["QUIET", "SMALL", "build"]

TABLE = [
    (way, stack, shapes, ranks)
    for way in ("worker", "native")
    for stack, shapes, ranks in (
        (False, False, [1]), (True, False, "all"), (False, True, "all"), (True, True, [1]),
    )
]  # fmt: skip
"""Options of verl's users: way, stacks, shapes, ranks."""
