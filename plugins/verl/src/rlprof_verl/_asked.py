"""What a verl config asks of rlprof, and what verl itself must then not do."""

from __future__ import annotations

import logging
import os
import subprocess
from typing import TYPE_CHECKING, Any

import rlprof
from rlprof.config import check_config
from rlprof_verl._translate import checked, translate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof.config import Config

log = logging.getLogger("rlprof")


def asked(config: Any) -> Config:
    """Return the config of rlprof in a config of verl's; raise ConfigError with every fault."""
    from omegaconf import OmegaConf

    if config.global_profiler.tool is None:  # RLPROF_CONFIG names a file
        return check_config(os.environ["RLPROF_CONFIG"])[0]
    found = translate(OmegaConf.to_container(config, resolve=True))
    own, _ = checked(found)
    for words in found.notes:
        log.warning("%s", words)
    return own


def prepare(config: Any, own: Config) -> str | None:
    """Have engines born as they must be, and verl's profiler off; return verl's finish hook."""
    from omegaconf import OmegaConf

    def put(key: str, value: Any) -> None:
        OmegaConf.update(config, key, value, force_add=True)

    put("global_profiler.steps", None)
    put("actor_rollout_ref.rollout.profiler", None)  # a server warns of a tool it does not know
    for section in ("actor_rollout_ref.actor", "actor_rollout_ref.ref", "critic"):
        if OmegaConf.select(config, f"{section}.profiler") is not None:
            put(f"{section}.profiler.enable", value=False)
    log.info("verl's own profiler is off: rlprof records")
    role = own.roles.get("rollout")
    if role is not None and role.engine is not None:
        launch = rlprof.launch(own, role="rollout", ranks=role.ranks or (0,))
        arguments = f"actor_rollout_ref.rollout.engine_kwargs.{role.engine}"
        for key, value in launch.engine_args.items():
            if key != "profiler_config":  # it names a folder by rank; replicas share arguments
                put(f"{arguments}.{key}", value)
        if launch.env:
            _give(launch.env)
    hook: str | None = config.global_profiler.get("finish_hook_cmd")
    return hook


def _give(env: Mapping[str, str]) -> None:
    """Have servers born with *env*: this process' platform says what they get."""
    try:
        from verl.plugin.platform import get_platform
    except ImportError:  # before 0.9
        log.warning("this verl gives its servers no variables; set them in the shell: %s", env)
        return
    platform = get_platform()
    own = platform.rollout_env_vars
    platform.rollout_env_vars = lambda: {**own(), **env}


def run_hook(command: str | None, run_dir: Path | None) -> None:
    """Run verl's `finish_hook_cmd` once, here, after the exports, with verl's variables."""
    if not command or run_dir is None:
        return
    said = {"SAVE_PATH": run_dir, "TOOL": "rlprof", "RANK": 0, "PID": os.getpid(), "ROLE": "driver"}
    env = os.environ | {f"VERL_PROFILE_{key}": str(value) for key, value in said.items()}
    try:
        subprocess.run(command, shell=True, env=env, check=True)  # noqa: S602 -- as verl does
    except (OSError, subprocess.CalledProcessError) as exc:
        log.warning("global_profiler.finish_hook_cmd: %s", exc)
