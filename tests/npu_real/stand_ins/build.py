"""Libraries that stand in for CANN's, so that the released torch_npu can be imported without it.

Nothing of CANN is used: what the wheel asks for is read from the wheel, by `nm` (all is bound when
it is loaded) and `strings`. Each name becomes a function that returns 0, but for those in `cann.c`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = (
    "ascendcl", "hccl", "msprofiler", "ms_tools_ext", "ascend_hal", "mspti", "acl_op_compiler",
    "ge_runner", "graph", "acl_tdt_channel", "ascend_dump",
)  # fmt: skip
"""The names that the wheel asks for; the first holds everything, the others link to it."""
_LINKED = re.compile(r"(?:acl|rt|Msprof|Hccl|ge)\w*")
_LOOKED_UP = re.compile(r"^(?:acl(?!nn)|Hccl|mstx|mspti|hal)[A-Z_a-z]\w+$", re.MULTILINE)
_WRITTEN = re.compile(r"^(?!static)\w[\w *]*?(\w+)\(", re.MULTILINE)


def build(folder: Path) -> int:
    """Make the libraries in *folder*; return how many names they have."""
    folder.mkdir(parents=True, exist_ok=True)
    written = (HERE / "cann.c").read_text()
    known = set(_WRITTEN.findall(written))
    names = sorted(_asked_for() - known)
    rest = folder / "rest.c"
    rest.write_text("\n".join(f"long {name}(void) {{ return 0; }}" for name in names))
    first, *others = LIBRARIES
    _compile(HERE / "cann.c", folder, first, rest)
    for name in others:
        link = folder / f"{name}.c"
        link.write_text(f"int stand_in_{name};\n")
        _compile(link, folder, name, "-Wl,--no-as-needed", f"-L{folder}", f"-l{first}",
                 "-Wl,-rpath,$ORIGIN")  # fmt: skip
    return len(names) + len(known)


def build_msprof(folder: Path) -> Path:
    """Put the program that stands in for msprof into *folder*, as CANN does; return where it is."""
    tools = folder / "tools/profiler"
    script = tools / "profiler_tool/analysis/msprof/msprof.py"
    program = tools / "bin/msprof"
    for file in (script, program):
        file.parent.mkdir(parents=True)
    script.touch()  # torch_npu looks whether it is there
    text = (HERE / "msprof.py").read_text()
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    return program.parent


def _asked_for() -> set[str]:
    """Return the names that the wheel needs and no library here defines."""
    site = Path(find_spec("torch_npu").submodule_search_locations[0]).parent
    wheel = site / "torch_npu"
    own = [*wheel.glob("_C*.so"), *wheel.glob("lib/*.so")]
    own = [file for file in own if "atb" not in file.name]
    torch = sorted((site / "torch/lib").glob("*.so*"))
    if not own:  # torch lies in the cache of environments, behind a .pth file
        raise FileNotFoundError(f"{wheel}: no libraries of torch_npu there")
    there = set().union(*(_symbols(file, "--defined-only") for file in [*own, *torch]))
    wanted = set().union(*(_symbols(file, "--undefined-only") for file in own)) - there
    linked = {name for name in wanted if _LINKED.fullmatch(name)}
    said = (_said(["strings", "-n", "5", file]) for file in own)
    return linked | {name for text in said for name in _LOOKED_UP.findall(text)}


def _symbols(file: Path, which: str) -> set[str]:
    """Return the names in *file*; a name with a version is the C library's or the compiler's."""
    lines = [line.split() for line in _said(["nm", "-D", which, file]).splitlines()]
    return {line[-1] for line in lines if "@" not in line[-1] and line[-2] not in "wv"}


def _said(command: list[str | Path]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _compile(source: Path, folder: Path, name: str, *more: str | Path) -> None:
    library = f"lib{name}.so"
    subprocess.run(
        ["gcc", "-w", "-O1", "-fPIC", "-shared", "-o", folder / library, source,
         f"-Wl,-soname,{library}", *more],
        check=True,
    )  # fmt: skip
