"""Figures of devices from the traces of a run's windows: figures 15 to 20 of the report.

`device_of(run)` reads every trace once, 120 MB of JSON a second: call it only to show the figures.
"""
