"""Real engines whose sources are edited in a copy: what the next release may do to us."""
