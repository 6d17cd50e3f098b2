"""An Engine of one scheduler, which keeps the times of its requests."""

from __future__ import annotations

from tests.sglang_real.drive import engine, run, told
from tests.sglang_real.itself import itself


def main():
    import sglang

    told(version=sglang.__version__)
    with engine(enable_metrics=True) as one:
        one.loop.run_until_complete(itself(one.tokenizer_manager))


if __name__ == "__main__":
    run(main)
