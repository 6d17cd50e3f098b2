"""What rlprof's plugins for rollout engines share; its README lists the modules.

Nothing here imports an engine.
"""
