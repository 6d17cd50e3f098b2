"""A web server that offers a few files to browsers of this machine, and nothing else.

It listens on loopback and knows a fixed list of paths: it lists and walks no folder. A page of
another site cannot guess the path of a trace. Nor can it ask under a name of its own that it made
resolve to 127.0.0.1.
"""

from __future__ import annotations

import os
import re
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

LOOPBACK = "127.0.0.1"
_OURS = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.IGNORECASE)
"""Any port: behind `ssh -L 9001:127.0.0.1:9002` it differs from ours."""
_TYPES = {
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
}
"""Types of a viewer's files; `mimetypes` would answer as the machine is configured."""


class FileServer(ThreadingHTTPServer):
    """Serve the files of *offers*, by their paths, with *headers* in every answer."""

    def __init__(
        self,
        port: int,
        *,
        offers: Mapping[str, Path],
        headers: Mapping[str, str],
        sent: Callable[[str, int], None],
    ) -> None:
        """Listen on *port*, 0 for any; call *sent* with path and size of each file sent whole."""
        self.offers = dict(offers)
        self.headers = dict(headers)
        self.sent = sent
        super().__init__((LOOPBACK, port), _Request)

    def server_bind(self) -> None:
        """Bind without asking a name server for our name, as http.server would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that has hung up; it may come back."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Request(BaseHTTPRequestHandler):
    server: FileServer
    timeout = 300
    """Seconds without traffic: each browser holds a thread and a file of ours."""

    def do_GET(self) -> None:
        self._give(is_head=False)

    def do_HEAD(self) -> None:
        self._give(is_head=True)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Write no log: the command prints what is worth a line."""

    def _wanted(self) -> Path | None:
        """Return the requested file; None: it was refused."""
        hosts = self.headers.get_all("Host") or [""]
        if len(hosts) > 1 or not _OURS.fullmatch(hosts[0]):
            self.send_error(HTTPStatus.FORBIDDEN, "only 127.0.0.1 and localhost are served")
            return None
        file = self.server.offers.get(self._path())
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND, "nothing is served under this path")
        return file

    def _path(self) -> str:
        return unquote(self.path.partition("?")[0])

    def _give(self, *, is_head: bool) -> None:
        file = self._wanted()
        if file is None:
            return
        try:
            stream = open_regular(file)  # each time: a reload serves a new timeline
        except OSError as exc:
            self.send_error(HTTPStatus.NOT_FOUND, f"the file cannot be opened: {exc.strerror}")
            return
        with stream:
            size = os.fstat(stream.fileno()).st_size
            self.send_response(HTTPStatus.OK)
            # A trace in gzip is sent as it is, not as an encoding: viewers unpack it themselves.
            kind = _TYPES.get(file.suffix, "application/octet-stream")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if is_head:
                return
            went = self.connection.sendfile(stream, count=size) if size else 0
        if went == size:
            self.server.sent(self._path(), size)
