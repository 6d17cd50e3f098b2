"""Installed tools that fail in every window."""

import threading

from rlprof import Ready, hookimpl

OFFERS = """
[rlprof.tools]
no_start = broken:NoStart
no_stop = broken:NoStop
hangs = broken:Hangs
"""


class NoStart:
    @hookimpl
    def start(self):
        raise RuntimeError("start went wrong")


class NoStop:
    @hookimpl
    def start(self):
        """Begin nothing."""

    @hookimpl
    def stop(self):
        raise RuntimeError("stop went wrong")


class Hangs:
    @hookimpl
    def configure(self, place):
        """Record the process, so that the step can stop waiting."""
        return None if place == "launch" else Ready("process")

    @hookimpl
    def start(self):
        threading.Event().wait()
