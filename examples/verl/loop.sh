#!/usr/bin/env bash
# Train with the real verl on this CPU: loop.sh PYTHON FOLDER [overrides of grpo.yaml]
# FOLDER gets the model and the data, once. MAIN is the module that is run: verl.trainer.main_ppo.
# VERL_CPU is the module that lets verl run on a CPU: verl_cpu.
set -euo pipefail
python=$1
export FOLDER=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
export HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 DO_NOT_TRACK=1 TOKENIZERS_PARALLELISM=false
export VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_NO_USAGE_STATS=1 VLLM_LOGGING_LEVEL=WARNING
if [ ! -e "$FOLDER/reward.py" ]; then
    mkdir -p "$FOLDER"
    "$python" "$here/prepare.py" "$FOLDER"
fi
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}
export VERL_USE_EXTERNAL_MODULES=${VERL_CPU:-verl_cpu}${VERL_USE_EXTERNAL_MODULES:+,$VERL_USE_EXTERNAL_MODULES}
export VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda VERL_ENGINE_VENDOR=nvidia
export CUDA_VISIBLE_DEVICES=0,1 RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0 # GPUs by name only
export RAY_AUTH_MODE=disabled RAY_DEDUP_LOGS=0
exec "$python" -m "${MAIN:-verl.trainer.main_ppo}" --config-dir "$here" --config-name grpo "$@"
