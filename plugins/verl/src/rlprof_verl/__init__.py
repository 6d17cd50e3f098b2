"""rlprof in verl: `global_profiler.tool=rlprof`, and verl's own keys for the rest.

`plugin` is what verl loads. `_trainer` is the trainer with a fleet, `_asked` what its config asks,
`_members` whom the fleet attaches, `_fits` what a verl must have. `_translate` reads verl's config
as one of rlprof and checks it, `files` reads it from a file for `rlprof check`. `python -m
rlprof_verl` runs verl 0.8, which has no plugins.
"""
