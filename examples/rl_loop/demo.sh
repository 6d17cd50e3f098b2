#!/usr/bin/env bash
# Train with two ranks under torchrun, profiled by profile.yaml; then look at the run. This is what
# `make demo` shows without vLLM or Ray.
set -euo pipefail
python=$1
cd "$(dirname "$0")"
bin=$(dirname "$python")
outputs=$(cd ../.. && pwd)/outputs
mkdir -p "$outputs"
cd "$outputs/.."

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; }

say rlprof check examples/rl_loop/profile.yaml
"$bin/rlprof" check examples/rl_loop/profile.yaml
say rlprof plan examples/rl_loop/profile.yaml --steps 1-6 --no-estimate
"$bin/rlprof" plan examples/rl_loop/profile.yaml --steps 1-6 --no-estimate
say torchrun --nproc-per-node 2 examples/rl_loop/train.py --config examples/rl_loop/profile.yaml
OMP_NUM_THREADS=1 "$python" -m torch.distributed.run --standalone --nproc-per-node 2 \
    examples/rl_loop/train.py --config examples/rl_loop/profile.yaml
run=$(ls -td outputs/profile/*/ | head -n 1)
run=${run%/}
say rlprof ls "$run"
"$bin/rlprof" ls "$run"
say rlprof plan examples/rl_loop/profile.yaml --steps 1-6 --like "$run"
"$bin/rlprof" plan examples/rl_loop/profile.yaml --steps 1-6 --like "$run"
say rlprof export "$run" --to timeline,report
"$bin/rlprof" export "$run" --to timeline,report
echo
echo "Open $run/exports/timeline.json.gz in https://ui.perfetto.dev (it stays on your machine)."
say rlprof why "$run"
"$bin/rlprof" why "$run"
echo
echo "Open $run/exports/report.html in a browser: where the time went, and what would help."
