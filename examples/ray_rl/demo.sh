#!/usr/bin/env bash
# `make demo`: train on Ray and vLLM, profiled by profile.yaml; then look at the run. Without vLLM or
# Ray it shows the loop without them and says why.
set -euo pipefail
python=$1
cd "$(dirname "$0")/../.."
bin=$(dirname "$python")
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
export RAY_raylet_start_wait_time_s=${RAY_raylet_start_wait_time_s:-120}
no_ray=69 # how train.py ends where Ray cannot start

bold='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' red=$'\033[1;31m' plain=$'\033[0m'; fi
say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; }
warn() { printf '\n%s%s%s\n' "$red" "$*" "$plain" >&2; }
show_the_other() {
    warn "demo: $1; here is the loop without an engine and Ray instead"
    bash examples/rl_loop/demo.sh "$python"
    warn "demo: this was the loop without an engine and Ray (examples/rl_loop): $1"
    exit
}

config=examples/ray_rl/profile.yaml
if vllm=$("$python" -c 'import vllm; print(vllm.__version__)' 2>"$own/stderr"); then
    echo "The replicas run vLLM $vllm on this CPU: small models, and some memory (5 GiB)."
else
    show_the_other "there is no vLLM here: $(grep -v '^ ' "$own/stderr" | tail -n 1)"
fi

say rlprof check $config
"$bin/rlprof" check $config
say rlprof plan $config --steps 1-12 --no-estimate
"$bin/rlprof" plan $config --steps 1-12 --no-estimate
say python examples/ray_rl/train.py --config $config
code=0
{ "$python" examples/ray_rl/train.py --config $config \
    2>&1 >&3 | tee -i "$own/stderr" >&2; } 3>&1 || code=$?
[ "$code" = "$no_ray" ] && show_the_other "$(grep '^Ray cannot start' "$own/stderr")"
[ "$code" = 0 ] || exit "$code"
run=$(ls -td outputs/profile/*/ | head -n 1)
run=${run%/}
say rlprof ls "$run"
"$bin/rlprof" ls "$run"
say rlprof export "$run" --to timeline,report
"$bin/rlprof" export "$run" --to timeline,report
echo
echo "Open $run/exports/timeline.json.gz in https://ui.perfetto.dev (it stays on your machine)."
echo "It has the driver's steps and phases, the operators of both trainers, the engine steps and"
echo "operators of both vLLM workers, the life of every request, from queue to last token, and"
echo "every trajectory of the agent with its turns, requests and tool calls."
say rlprof why "$run"
"$bin/rlprof" why "$run"
echo
echo "The demo has one fault on purpose: its calculator forgets one question of each step for a second."
echo
echo "Open $run/exports/report.html in a browser: where the time went, and what would help."
echo "The command rlprof is $bin/rlprof."
