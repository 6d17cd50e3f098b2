"""`rlprof` and `python -m rlprof`: run the commands of rlprof-cli, or say how to install them."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; return its exit code."""
    from rlprof.distributions import how_to_install, load

    try:
        return int(load("rlprof_cli", asked="cli").main())
    except ImportError as exc:
        if exc.name != "rlprof_cli":
            raise
        todo = how_to_install("rlprof-cli")
        print(f"rlprof: the commands are in rlprof-cli; {todo}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # during the imports
        print("rlprof: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
