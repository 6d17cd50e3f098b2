"""The text of a config file: a Config, or a ConfigError of well-formed lines, and nothing else."""

from pathlib import Path

from rlprof import ConfigError
from rlprof.config import Config, check_config
from rlprof.rundir import as_line
from tests.fakes import tools
from tests.properties.fault_lines import misformed

SEEDS = tuple(seed.encode() for seed in (
    """\
run_dir: outputs/profile
tool: [fake, other]
steps: [2, "5-7"]
mode: discrete
roles:
  actor:
    ranks: [0, 1]
    phases: [rollout, update_actor]
    options: {fake: {level: 2}}
  critic: {}
tools:
  fake: {level: 3, unsupported: [a, b], hangs_in: ""}
limits: {bytes: 4GB, window_s: 300, start_timeout_s: 0.5}
strict: false
""",
    """\
tool: &tools torch
enabled: true
scratch_dir: null
steps: {every: 100, first: 2, last: 1000}
mode: continuous
join_steps: true
roles: {actor: &role {ranks: all, tool: *tools}, ref: {<<: *role, ranks: 3, engine: x}}
tools: {torch: {contents: [cpu, shapes], schedule: {active: 2, wait: 1}}}
engines: {x: {a: 1}}
""",
    "tool: fake\nroles: {a: {options: {fake: {raises_in: !!str 7, artifacts: 0x1F}}}}\n",
    "- a\n- {b: !!set {x, y}, c: !!timestamp 2001-02-03, d: !!binary aGk=, e: !!omap [f: .nan]}\n",
))  # fmt: skip
TOKENS = (
    b"!!int ", b"!!bool ", b"!!float ", b"!!timestamp ", b"!!binary ", b"!!set ", b"!!omap ",
    b"!!pairs ", b"!!python/name:os.system ", b"!!merge ", b"!!null ", b"&a ", b"*a", b"<<: ",
    b"? ", b"| ", b">+2 ", b"---\n", b"...\n", b"%YAML 1.1\n", b"%TAG ! x:\n", b"\xef\xbb\xbf",
    b"\xff\xfe", b"\\ud800", b'"\\n"', b"\\x85", b"1e400", b".inf", b".nan", b"2001-02-30", b"1:30",
    b"0b1", b"1_0", b"save_path", b"all", b"none", b"2-4", b"4GB", b"\t", b"=", b"~", b"every",
)  # fmt: skip


def check(data: bytes, folder: Path) -> None:
    """Load it with the plugins it names, and use every part of what comes out."""
    tools.register()
    file = folder / "p.yaml"
    file.write_bytes(data)
    try:
        config, uses = check_config(file)
    except ConfigError as exc:
        wrong = {complaint.partition(":")[0] for complaint in misformed(exc)}
        assert not wrong, "; ".join(sorted(wrong))
        return
    assert isinstance(config, Config)
    assert set(uses) <= (set(config.roles) if config.enabled else set())
    as_line(config.as_data())
    for role in config.roles:
        schedule = config.schedule(role)
        assert schedule.at_step(2) is None or schedule.mode == "continuous"
