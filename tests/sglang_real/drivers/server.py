"""SGLang's HTTP server, as frameworks start it: by its command line."""

from __future__ import annotations

from importlib.metadata import version

from tests.sglang_real.drive import run, server, told
from tests.sglang_real.itself import itself_over_http


def main():
    told(version=version("sglang"))
    with server(enable_metrics=True) as (url, _):
        itself_over_http(url)


if __name__ == "__main__":
    run(main)
