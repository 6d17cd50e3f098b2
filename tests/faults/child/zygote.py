"""A process that imports torch and forks a child for each script, which it runs as `__main__`."""

import gc
import json
import os
import select
import sys
from pathlib import Path

import torch  # noqa: F401


def serve():
    """Fork a child for each line of stdin and report its pid and exit; return in the child."""
    children = set()
    while True:
        if select.select([0], [], [], 0.01)[0]:
            line = sys.stdin.readline()
            if not line:
                os._exit(0)
            order = json.loads(line)
            pid = os.fork()
            if pid == 0:
                return order
            children.add(pid)
            say({"started": pid})
        for pid in tuple(children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                children.remove(pid)
                say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def say(line):
    print(json.dumps(line), flush=True)


def become(order):
    """Give this child the environment, files and arguments of *order*."""
    os.setsid()
    for number, path in enumerate([os.devnull, order["out"], order["err"]]):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = os.open(path, flags, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path[:0] = [path for path in order["path"] if path not in sys.path]
    sys.argv = [order["script"]]
    return Path(order["script"]).read_text()


__import__("torch._inductor.config")  # the tool imports it too, and it takes another second
gc.collect()
gc.freeze()  # otherwise every child copies all of torch's objects at its end, in a second
order = serve()
source = become(order)
__file__ = order["script"]
exec(compile(source, __file__, "exec"))  # noqa: S102 -- what it is for
