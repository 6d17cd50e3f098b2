"""A loop of four steps, and the config that records two of them into a bucket."""

TRAIN = '''
import json, os, signal, socket, sys
import rlprof

_, said, role, host = sys.argv
socket.gethostname = lambda: host  # else ranks see in /proc whether others live

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as many programs have it

class Tool:
    @rlprof.hookimpl
    def configure(self, place):
        if place == "process" and "HELD" in os.environ:
            print("configures", flush=True)
            sys.stdin.readline()

    @rlprof.hookimpl
    def start(self):
        """Start nothing."""

    @rlprof.hookimpl
    def stop(self, folder):
        (folder / "raw").write_text("x" * 1000)

    @rlprof.hookimpl
    def export(self, folder, out):
        (out / "one.txt").write_bytes((folder / "raw").read_bytes())
        return [rlprof.Artifact("one.txt", "files", "text")]

rlprof.register("tool", "one", Tool)
with rlprof.open(json.loads(said), role=role) as prof:
    print("open", flush=True)
    prof.step(0)
    sys.stdin.readline()
    for step in prof.steps(range(1, 5)):
        with prof.phase("update"):
            pass
print(json.dumps([name for name in sys.modules if name in ("fsspec", "s3fs")]))
'''
"""Its arguments are the config, the role and the host.

It waits for a line before its first step, and prints the packages for buckets it has imported.
"""


def config(url, scratch, **more):
    """Return a config that records steps 1 and 2 of every rank of two roles."""
    roles = {"actor": {"ranks": "all"}, "critic": {"ranks": "all"}}
    return {"run_dir": url, "scratch_dir": str(scratch), "tool": "one", "steps": "1-2",
            "roles": roles, **more}  # fmt: skip
