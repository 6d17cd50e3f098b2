"""verl's config as one of rlprof: the same words, the same meaning.

It takes plain data, whole or in part: a key that is missing has verl's default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config import check_config
from rlprof.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof.config import Config, ToolUse

    Checked = tuple[Config, dict[str, tuple[ToolUse, ...]]]

OWN = "global_profiler.global_tool_config.rlprof"
"""Where verl's config has keys of rlprof's own; they go over what verl's keys say."""
ENGINES = ("vllm", "sglang")
SECTIONS = {
    "actor": "actor_rollout_ref.actor.profiler",
    "critic": "critic.profiler",
    "rollout": "actor_rollout_ref.rollout.profiler",
}
STAGES = {
    "actor": ("old_log_prob", "ref", "update_actor", "update_weights"),
    "critic": ("values", "update_critic"),
    "rollout": ("gen",),
}
"""Discrete mode: the phases in which a role's processes work."""

_USUAL = (("contents", "contents"), ("level", "level"))
_OPTIONS = {"torch_memory": (("max_entries", "trace_alloc_max_entries"),)}
"""Tool → its options that verl has a key for, each with that key."""


@attrs.define
class Translation:
    """A config of rlprof, and which key of verl's each of its keys comes from."""

    verl: Mapping[str, Any]
    config: dict[str, Any] = attrs.field(factory=dict)
    keys: dict[str, str] = attrs.field(factory=dict)
    faults: list[str] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def of(self, role: str, path: str) -> Any:
        """Return a value of a role's section; rollouts inherit from the actor what they lack."""
        value = at(self.verl, f"{SECTIONS[role]}.{path}")
        return self.of("actor", path) if value is None and role == "rollout" else value

    def verl_key(self, path: str) -> str:
        """Return the key of verl's for *path*; what verl has no key for is one of rlprof's own."""
        known = [key for key in self.keys if _is_in(path, key)]
        if not known:
            return f"{OWN}.{path}"
        nearest = max(known, key=len)
        return self.keys[nearest] + path[len(nearest) :]


def translate(verl: Mapping[str, Any]) -> Translation:
    """Read *verl*, a whole config of verl's."""
    found = Translation(verl)
    asked = at(verl, "global_profiler") or {}
    own = dict(at(verl, OWN) or {})
    tools = own.get("tool", "torch")
    found.faults += [
        f"{section}.{key}: expected true or false, got {said!r}"
        for section in SECTIONS.values()
        for key in ("enable", "all_ranks")
        if (said := at(verl, f"{section}.{key}")) not in (None, True, False)
        and "${" not in str(said)
    ]
    enabled = [role for role in SECTIONS if found.of(role, "enable")]
    names = {role: _names(own, role, tools) for role in enabled}
    roles = {role: _role(found, role, names[role]) for role in enabled}
    discrete = {
        role: any(
            found.of(role, f"tool_config.{one}.discrete")
            for one in (*names[role], *_listed(tools))  # the mode is not a tool's own
        )
        for role in enabled
    }
    if "rollout" in roles:
        _add_rollout(found, roles)
    is_off = not (roles or own.get("roles"))
    joined = bool(asked.get("profile_continuous_steps"))
    config = {
        "run_dir": asked.get("save_path") or "outputs/profile",
        "tool": "none" if is_off else tools,
        "steps": asked.get("steps") or "none",
        "mode": _mode(found, discrete, joined=joined),
        "join_steps": joined,
        "roles": roles,
    }
    found.keys |= {
        "run_dir": "global_profiler.save_path",
        "steps": "global_profiler.steps",
        "join_steps": "global_profiler.profile_continuous_steps",
    }
    everyone = {role: {"ranks": "all", "tool": []} for role in ("actor", "agent")}
    config["roles"] = roles = everyone | roles  # those that nothing records have spans
    if own.get("mode", config["mode"]) == "discrete":
        for role in roles.keys() & STAGES.keys():
            if roles[role].get("tool") != []:
                roles[role]["phases"] = list(STAGES[role])
    found.config = _merged(config, own)
    found.keys |= {path: f"{OWN}.{path}" for path in _paths(own)}
    return found


def _names(own: Mapping[str, Any], role: str, usual: Any) -> list[str]:
    """Name the tools of *role* by rlprof's own keys; *usual* are those of the other roles."""
    said = at(own, f"roles.{role}.tool")
    return _listed(usual if said is None else said)


def _listed(said: Any) -> list[str]:
    return [said] if isinstance(said, str) else list(said or ())


def checked(found: Translation, source: str = "verl") -> Checked:
    """Check *found* and the plugins it names; raise ConfigError with every fault."""
    faults = list(found.faults)
    try:
        config, uses = check_config(found.config)
        faults += _unborn(uses)
    except ConfigError as exc:
        parts = [fault.removeprefix("config: ").partition(": ") for fault in exc.faults]
        faults += [f"{found.verl_key(path)}: {words}" for path, _, words in parts]
    if faults:
        raise ConfigError([f"{source}: {one}" for one in faults], source)
    return config, uses


def _unborn(uses: Mapping[str, tuple[ToolUse, ...]]) -> list[str]:
    """Name tools that must be there when a process starts that verl alone starts."""
    return [
        f"{OWN}.roles.{role}.tool: {one.name!r} must be present when its process starts, and verl "
        "has no way to start it so; write torch here, and keep it for the roles actor and critic"
        for role in ("rollout", "agent")  # the others are started with them, by `_births`
        for use in uses.get(role, ())
        for one in use.inside or (use,)
        if one.launch.argv_prefix
    ]


def _role(found: Translation, role: str, tools: list[str]) -> dict[str, Any]:
    """Read a role's `profiler` section, which is enabled."""
    section = found.keys[f"roles.{role}"] = SECTIONS[role]
    asked = found.of(role, "ranks") or [0]
    ranks = asked if isinstance(asked, str) else list(asked)
    made: dict[str, Any] = {"ranks": "all" if found.of(role, "all_ranks") else ranks}
    nodes, each = (at(found.verl, f"trainer.{key}") for key in ("nnodes", "n_gpus_per_node"))
    if made["ranks"] != "all" and isinstance(nodes, int) and isinstance(each, int):
        beyond = [one for one in ranks if isinstance(one, int) and one >= nodes * each]
        if beyond:
            gpus = f"trainer.nnodes x trainer.n_gpus_per_node = {nodes * each} ranks"
            found.faults.append(f"{section}.ranks: rank {beyond[0]} does not exist among {gpus}")
    options: dict[str, Any] = {}
    for tool in tools:
        key = f"tool_config.{tool}"
        ours = _OPTIONS.get(tool, _USUAL)
        said = {name: found.of(role, f"{key}.{verls}") for name, verls in ours}
        if any(said.values()):
            options[tool] = {name: value for name, value in said.items() if value}
            found.keys[f"roles.{role}.options.{tool}"] = f"{section}.{key}"
        if (found.of(role, f"{key}.schedule.active") or 0) > 0:
            words = "not applied; whole phases are recorded, all mini-batches"
            found.notes.append(f"{section}.{key}.schedule: {words}")
    return made | ({"options": options} if options else {})


def _add_rollout(found: Translation, roles: dict[str, dict[str, Any]]) -> None:
    """Say which engine the role `rollout` is, and which of its iterations are recorded."""
    key = "actor_rollout_ref.rollout.name"
    engine = at(found.verl, key)
    if engine not in ENGINES:
        there, off = ", ".join(ENGINES), f"{SECTIONS['rollout']}.enable=false"
        found.faults.append(f"{key}: rlprof records {there}, got {engine!r}; set {off}")
        del roles["rollout"]
        return
    roles["rollout"]["engine"] = engine
    section = f"{SECTIONS['rollout']}.tool_config.torch"
    words = ("profile_token_start", "profile_token_end")
    first, end = (at(found.verl, f"{section}.{word}") for word in words)
    if isinstance(end, int):
        steps = {"skip": first or 0, "count": end - (first or 0)}
        roles["rollout"].setdefault("options", {})[engine] = {"iterations": steps}
        found.keys[f"roles.rollout.options.{engine}"] = section
        found.notes.append(f"{section}.{words[1]}: read as engine steps of each window, not tokens")
    elif first is not None:
        found.notes.append(f"{section}.{words[0]}: not applied without {words[1]}")


def _mode(found: Translation, discrete: Mapping[str, bool], *, joined: bool) -> str:
    """Choose the mode of the run: verl has one for each role."""
    asked = [role for role, is_discrete in discrete.items() if is_discrete]
    if joined and asked:
        key = f"{SECTIONS[asked[0]]}.tool_config.torch.discrete"
        found.faults.append(f"{key}: set it to false, or profile_continuous_steps to false")
    if is_async(found.verl):
        found.notes.append(
            "trainer.v1.trainer_mode: replicas generate at any time, so each window is a whole step"
        )
        return "continuous"
    training = [role for role in discrete if role != "rollout"]
    chosen = [discrete[role] for role in training or discrete]
    if any(chosen) and not all(chosen):
        found.notes.append("discrete is true for one role: all training roles record by phase")
    return "discrete" if any(chosen) and not joined else "continuous"


def is_async(verl: Mapping[str, Any]) -> bool:
    """Whether replicas generate while workers train."""
    is_v1 = at(verl, "trainer.use_v1") is not False
    return is_v1 and at(verl, "trainer.v1.trainer_mode") not in (None, "sync")


def at(data: Any, path: str) -> Any:
    """Return what is at the dotted *path*; None if nothing is."""
    for key in path.split("."):
        data = data.get(key) if hasattr(data, "get") else None
    return data


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = [
        key for key in above if isinstance(above[key], dict) and isinstance(below.get(key), dict)
    ]
    return {**below, **above, **{key: _merged(below[key], above[key]) for key in both}}


def _paths(data: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in data.items():
        path = f"{above}.{key}" if above else str(key)
        yield path
        if isinstance(value, dict):
            yield from _paths(value, path)


def _is_in(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))
