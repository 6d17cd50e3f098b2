"""Parts shared by rlprof's engine plugins; the README lists the modules.

Nothing here imports an engine.
"""
