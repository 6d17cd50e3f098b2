"""Any bytes to two parsers. `parsers/` says what is fed, and what must hold.

`RLPROF_FUZZ=100000` has so many inputs made; Hypothesis makes the smallest one that fails.
"""
