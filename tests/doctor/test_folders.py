"""Folders that a run writes to, tried with real files: full, refused, shared or hung."""

import os
import shutil
import subprocess

import pytest

from rlprof_cli.doctor._folders import look_at_run_dir, look_at_scratch
from tests.doctor.running import doctor
from tests.faults.disks import tmpfs
from tests.waiting import python


def test_a_writable_folder_is_ok_and_unchanged(tmp_path):
    """A writable folder is ok and stays unchanged; too little space is a warning."""
    (tmp_path / "file").write_text("mine")

    found = [*look_at_run_dir(str(tmp_path / "a/b"), 10**6), *look_at_scratch(str(tmp_path))]
    (full,) = look_at_run_dir(str(tmp_path), 10**15)

    assert {one.level for one in found} == {"ok"}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert full.level == "warn"
    assert "are free, of 1000000 GB that may be needed; make room, or set" in str(full)


@pytest.mark.slow
def test_a_folder_of_another_user_is_refused(tmp_path):
    """A folder in which the user may not write is BAD as run_dir and scratch_dir."""
    folder = tmp_path / "runs"
    folder.mkdir(mode=0o500)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    code = (
        "import os, sys\n"
        "from rlprof_cli.doctor._folders import look_at_run_dir, look_at_scratch\n"
        "os.getuid() or os.setuid(65534)\n"  # root may write everywhere
        "for found in [*look_at_run_dir(sys.argv[1], 1), *look_at_scratch(sys.argv[1])]:\n"
        "    print(found.level, found)\n"
    )

    done = python("-c", code, folder, check=True)

    run_dir, scratch = done.stdout.splitlines()
    assert run_dir.startswith(f"BAD run_dir {folder}: cannot be written: Permission denied")
    assert scratch.startswith(f"BAD scratch_dir {folder}: cannot be written: Permission denied")


def test_a_scratch_others_may_write_to_is_refused(tmp_path):
    """A scratch folder that other users may write to is BAD, as a session refuses it."""
    home = tmp_path / f"rlprof-{os.getuid()}"
    home.mkdir()
    home.chmod(0o777)

    (found,) = look_at_scratch(str(tmp_path))

    why = f"others may write to {home.name} in it; remove it, or name another scratch_dir"
    assert (found.level, str(found)) == ("BAD", f"scratch_dir {tmp_path}: {why}")


@pytest.mark.slow
def test_a_run_in_memory_is_a_warning_and_scratch_in_memory_is_ok(profile, tmp_path):
    """On tmpfs, the scratch folder is ok and the run folder a warning."""
    disk = str(tmp_path / "disk")

    with tmpfs(tmp_path / "disk", "size=2g"):
        told = doctor(profile(run_dir=disk, scratch_dir=disk, limits={"bytes": "1MB"}))

    assert told.code == 0, told.text
    assert any(line.startswith(f"run_dir {disk}: is in memory (tmpfs)") for line in told["warn"])
    assert any(line.startswith(f"scratch_dir {disk}: can be written") for line in told["ok"])


@pytest.mark.slow
def test_a_full_tmpdir_is_named(profile, tmp_path):
    """A full scratch folder is BAD; the run folder is ok."""
    with tmpfs(tmp_path / "disk", "size=64k") as disk:
        told = doctor(profile(scratch_dir=str(disk)), env={"TMPDIR": str(disk)})

    assert told.code == 1
    full = f"scratch_dir {disk}: is full (No space left on device)"
    assert any(line.startswith(full) for line in told["BAD"]), told.text
    assert any(line.startswith("run_dir") for line in told["ok"]), told.text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="takes a C compiler")
def test_a_file_system_that_hangs_is_a_finding(profile, tmp_path):
    """Folders on a file system that hangs are findings, and the rest is still examined."""
    shim = "#include <unistd.h>\nint mkdir(const char *a, unsigned b) { sleep(600); return -1; }\n"
    (tmp_path / "shim.c").write_text(shim)
    argv = ["cc", "-shared", "-fPIC", "-o", "shim.so", "shim.c", "-ldl"]
    subprocess.run(argv, check=True, cwd=tmp_path)
    env = {"LD_PRELOAD": str(tmp_path / "shim.so")}
    code = (
        "import sys\n"
        "from rlprof_cli.doctor import _examine\n"
        "_examine._QUICK_S = 3\n"
        "from rlprof_cli import main\n"
        "sys.exit(main(['doctor', sys.argv[1], '--timeout', '3']))\n"
    )

    done = python("-c", code, profile(), env=os.environ | env, timeout=120)

    assert done.returncode == 1
    assert done.stdout.count("trying to write there did not return within 3 s") == 2
    assert "BAD   tools: no tool was tried" in done.stdout
    assert "clocks: " in done.stdout
