"""`rlprof attach`: record a live run that was not started with rlprof.

`actors` who lives in the cluster · `frameworks` which of them train and serve · `look` what an
actor says of itself · `found` the members of the run · `edges` where its steps begin · `record` the
recording · `command` the command line
"""
