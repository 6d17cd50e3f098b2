"""A TokenizerManager as verl holds it, of two schedulers: two ranks of one, or two replicas."""

from __future__ import annotations

from tests.sglang_real.drive import ARGUMENTS, run, tokenizer_manager, told
from tests.sglang_real.itself import itself


async def main():
    import sglang

    told(version=sglang.__version__)
    with tokenizer_manager(**ARGUMENTS["sizes"]) as manager:
        await itself(manager)


if __name__ == "__main__":
    run(main)
