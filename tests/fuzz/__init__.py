"""Fuzzers, one per parser; run by hand: `python -m tests.fuzz NAME --minutes 10 [--seed N]`.

`_loop` runs one · `_mutate` changes inputs · `_reach` sees which lines were reached · `parsers/`
what is fed, and what must hold. They need no package of their own, so that they run wherever the
tests run. A violation stops the run and leaves a file; `--replay FILE` runs just that.
"""
