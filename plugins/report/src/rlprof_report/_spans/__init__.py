"""Reads the span files of a run into columns, so that a report needs no object for each span."""
