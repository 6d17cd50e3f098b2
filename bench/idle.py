"""What rlprof costs while it is idle: a config, an open session, no window.

`.envs/test/bin/python bench/idle.py`
"""

from __future__ import annotations

import sys
import tempfile

from _measure import machine, nanoseconds, verdict

import rlprof


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        config = {"run_dir": folder, "tool": "torch", "steps": "none", "roles": {"actor": {}}}
        with rlprof.open(config) as prof:
            prof.step(1)

            def phase() -> None:
                with prof.phase("update_actor"):
                    pass

            def span() -> None:
                with prof.span("request"):
                    pass

            @rlprof.annotate("request", span=True)
            def call() -> None:
                pass

            def deep_span() -> None:
                with rlprof.span("request"):
                    pass

            def tool_call() -> None:
                with path.tool_call("search"):
                    pass

            # The helper thread writes meanwhile and takes its share of the interpreter.
            costs = {f.__name__: nanoseconds(f, 5_000, 20) for f in (phase, span, call)}
            with rlprof.trajectory(7) as path, path.turn(0):
                inside = (deep_span, tool_call)
                costs |= {
                    f"{f.__name__} in a trajectory": nanoseconds(f, 5_000, 20) for f in inside
                }
    print(f"idle: {machine()}")
    holds = [verdict(name, cost / 1000, 5, "us") for name, cost in costs.items()]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
