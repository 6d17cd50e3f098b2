"""`rlprof attach`: record a live run that was not started with rlprof.

`actors` the live actors of a cluster · `frameworks` which of them train and serve · `look` asks an
actor about itself · `found` the members of the run · `edges` where its steps begin · `record` the
recording · `command` the command line
"""
