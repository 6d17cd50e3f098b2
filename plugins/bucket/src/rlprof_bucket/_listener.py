"""The listener `bucket`: it reports copies that fail, and waits for the last one."""

from __future__ import annotations

import logging
from typing import Any

import rlprof
from rlprof_bucket._helper import Helper, taken


class Bucket:
    """Copies a run to the URL of its `run_dir`; core adds it to the listeners of the config."""

    def __init__(self) -> None:
        self._helper: Helper | None = None
        self._error = ""

    @rlprof.hookimpl
    def session_opened(self, session: Any) -> None:
        """Take over the helper process."""
        self._helper = taken(session.run_dir)
        session.at_end.append(self._helper.forget)

    @rlprof.hookimpl
    def tick(self, session: Any) -> None:
        """Report copies that fail, and the first that succeeds again."""
        error = None if self._helper is None else self._helper.heard()
        if error is None or error == self._error:
            return
        self._error = error
        if error:
            reason = f"{session.run.url}: {error}; what is new waits in {session.run_dir}"
            session.warn("bucket", reason)
            session.write("problem", reason=f"bucket: {reason}")
        else:
            session.log(f"copies to {session.run.url} again")

    @rlprof.hookimpl
    def session_closing(self, session: Any) -> None:
        """Wait for the last copy once all is written."""
        session.closing.append(self._finish)

    def _finish(self, session: Any) -> None:
        helper, self._helper = self._helper, None
        if helper is None:  # closed again
            return
        url, path = session.run.url, session.run_dir
        limit_s = session.config.limits.export_timeout_s
        left = helper.last(limit_s, lambda: session.log(f"waits for copies to {url}"))
        if left is None:
            late = f"export_timeout_s {limit_s:g} is over"
            why = f"not all files were copied to {url}: {helper.death() or late}"
        elif left:
            why = f"{left} files could not be copied to {url}"
        else:
            return
        session.log(f"{why}; they are in {path}: rlprof send {path} {url}", logging.WARNING)
