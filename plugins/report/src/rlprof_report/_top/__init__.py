"""A live run as one screen, from the lines written since the last read.

`tail` reads what is new, `live` keeps what a screen needs, `screen` draws it.
"""
