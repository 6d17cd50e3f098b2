"""`python -m rlprof_verl ...` in the place of `python -m verl.trainer.main_ppo ...`: for verl 0.8.

That has no plugins. It imports the modules that a variable names, in each of its processes.
"""

from __future__ import annotations

import os
import runpy
import sys

VARIABLE = "VERL_USE_EXTERNAL_MODULES"


def main() -> None:
    """Run verl with the plugin loaded here and, by Ray's runtime environment, elsewhere."""
    given = [one for one in os.environ.get(VARIABLE, "").split(",") if one]
    names = ",".join(dict.fromkeys([*given, "rlprof_verl.plugin"]))
    os.environ[VARIABLE] = names
    sys.argv.append(f"+ray_kwargs.ray_init.runtime_env.env_vars.{VARIABLE}='{names}'")
    runpy.run_module("verl.trainer.main_ppo", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
