"""A plugin for examples/third_party_engine that fails before start and after stop."""

import attrs
from faulty import FaultyOptions, go_wrong

from rlprof import hookimpl
from rlprof_mini import Mini


class Moody:
    """Record with `mini`, unless a hook is to fail."""

    Options = FaultyOptions
    options = FaultyOptions()

    def __init__(self):
        self.mini = Mini()

    @hookimpl
    def configure(self, place, options, handle):
        self.options = options
        go_wrong(options, "launch" if place == "launch" else "configure", options.at)
        return self.mini.configure(place, handle)

    @hookimpl
    def start(self, window, folder, handle):
        go_wrong(self.options, "start", window.start_step)
        self.mini.start(folder, handle)

    @hookimpl
    def stop(self, window, handle):
        self.mini.stop(handle)
        go_wrong(self.options, "stop", window.start_step)

    @hookimpl
    def export(self, capture, folder, out):
        go_wrong(FaultyOptions(**capture.options), "export", capture.window.start_step)
        return self.mini.export(attrs.evolve(capture, options={}), folder, out)
