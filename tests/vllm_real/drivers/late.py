"""An LLM in this process that started before rlprof was installed."""

import os

os.environ["VLLM_PLUGINS"] = ""  # vLLM loads no plugin, as without rlprof

from tests.vllm_real.drive import ARGUMENTS, config, told
from tests.vllm_real.drivers.within import generate, recorded
from tests.vllm_real.tiny import SMALL

if __name__ == "__main__":
    from vllm import LLM

    from rlprof_vllm import inside

    llm = LLM(model=ARGUMENTS["model"], **SMALL)
    generate(llm, 4)
    told(installed=inside.installed)
    recorded(llm, "late", config(steps=[2], role={"ranks": "all"}))
    told(done=True)
