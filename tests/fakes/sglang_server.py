"""SGLang's HTTP server, as far as profiling goes, over the schedulers of the fakes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.sglang_engines import SchedulerDiedError, Stand


class Handler(BaseHTTPRequestHandler):
    """Answers like the server; what it is posted is in the server's list."""

    server: Any

    def do_GET(self) -> None:
        """Tell of itself."""
        if self.path not in self.server.routes:
            self._say(404, {"detail": "Not Found"})
            return
        manager = self.server.manager
        states = manager.replica.states()
        own = manager.server_args
        arguments = own.resolved_dict() if hasattr(own, "resolved_dict") else vars(own)
        said = {**arguments, "version": self.server.version, "internal_states": states}
        self._say(200, said)

    def do_POST(self) -> None:
        """Have the schedulers profile, or stop."""
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or "{}")
        self.server.posted.append((self.path, body))
        key = self.server.admin_key
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._say(401, {"error": "Unauthorized"})
        elif self.path in self.server.codes:
            self._say(self.server.codes[self.path], "not so")
        else:
            self._profile(body)

    def _profile(self, body: dict[str, Any]) -> None:
        from sglang.srt.managers import io_struct

        known = io_struct.ProfileReq.__dataclass_fields__
        words = {name: one for name, one in body.items() if name in known}
        kind = "START_PROFILE" if self.path == "/start_profile" else "STOP_PROFILE"
        try:
            answer = self.server.manager.replica.ask(io_struct.made(kind, words))
        except SchedulerDiedError:
            self.close_connection = True  # and nobody answers any more
            return
        if answer.success:
            self._say(200, "Start profiling.\n")
        else:  # why, only its log says
            self._say(500, "Internal Server Error")

    def _say(self, code: int, said: Any) -> None:
        text = said if isinstance(said, str) else json.dumps(said)
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(manager: Stand, release: str, routes: list[str], admin_key: str = "") -> Iterator[Any]:
    """Serve *manager* of *release* at `.address`; *routes* are those that release has."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.manager, server.admin_key = manager, admin_key
    server.version = release.partition("==")[2]
    server.posted, server.codes = [], {}
    server.routes = routes
    server.address = f"http://127.0.0.1:{server.server_port}"
    server.generate = manager.generate
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
