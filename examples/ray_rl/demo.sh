#!/usr/bin/env bash
# `make demo`: train on Ray and vLLM, profiled by profile.yaml; then look at the run. Where there is no
# vLLM the replicas have a toy for an engine, and where Ray cannot start the loop without it is shown
# instead. Either is said, and under CI it is an error.
set -euo pipefail
python=$1
cd "$(dirname "$0")/../.."
bin=$(dirname "$python")
own=$(mktemp -d) # what is installed for the demo alone is here: the environment stays as it is
trap 'rm -rf "$own"' EXIT
export RAY_raylet_start_wait_time_s=${RAY_raylet_start_wait_time_s:-120}
no_ray=69 # how train.py ends where Ray cannot start

bold='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' red=$'\033[1;31m' plain=$'\033[0m'; fi
say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; }
warn() { printf '\n%s%s%s\n' "$red" "$*" "$plain" >&2; }
fail_in_ci() {
    case ${CI:-} in
    '' | 0 | false) ;;
    *)
        warn "demo: $1; under CI that is an error"
        exit 1
        ;;
    esac
}

config=examples/ray_rl/profile.yaml
without=
engine=()
if vllm=$("$python" -c 'import vllm; print(vllm.__version__)' 2>"$own/stderr"); then
    echo "The replicas run vLLM $vllm on this CPU: small models, and some memory (5 GiB)."
else
    reason="there is no vLLM here: $(grep -v '^ ' "$own/stderr" | tail -n 1)"
    fail_in_ci "$reason"
    without="the engine was a toy (examples/third_party_engine): $reason"
    warn "demo: $reason; the engine is a toy instead (examples/third_party_engine)"
    "$python" -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation \
        --no-index --target "$own/site" examples/third_party_engine
    export PYTHONPATH="$own/site${PYTHONPATH:+:$PYTHONPATH}"
    config=examples/ray_rl/profile_mini.yaml
    engine=(--engine mini)
fi

say rlprof check $config
"$bin/rlprof" check $config
say rlprof plan $config --steps 1-12 --no-estimate
"$bin/rlprof" plan $config --steps 1-12 --no-estimate
say python examples/ray_rl/train.py --config $config "${engine[@]}"
code=0
{ "$python" examples/ray_rl/train.py --config $config "${engine[@]}" \
    2>&1 >&3 | tee -i "$own/stderr" >&2; } 3>&1 || code=$?
if [ "$code" = "$no_ray" ]; then
    reason=$(grep '^Ray cannot start' "$own/stderr")
    fail_in_ci "$reason"
    warn "demo: $reason; here is the loop without Ray instead"
    bash examples/rl_loop/demo.sh "$python"
    warn "demo: this was the loop without Ray (examples/rl_loop). $reason"
    exit
fi
[ "$code" = 0 ] || exit "$code"
run=$(ls -td outputs/profile/*/ | head -n 1)
run=${run%/}
say rlprof ls "$run"
"$bin/rlprof" ls "$run"
say rlprof export "$run" --to timeline,report
"$bin/rlprof" export "$run" --to timeline,report
echo
echo "Open $run/exports/timeline.json.gz in https://ui.perfetto.dev (it stays on your machine)."
if [ -z "$without" ]; then
    echo "It has the driver's steps and phases, the operators of both trainers, the engine steps and"
    echo "operators of both vLLM workers, the life of every request, from queue to last token, and"
    echo "every trajectory of the agent with its turns, requests and tool calls."
else
    echo "It has the driver's steps and phases, the operators of both trainers, the iterations of both"
    echo "engines, and every trajectory of the agent with its turns, requests and tool calls."
    warn "demo: $without"
fi
say rlprof why "$run"
"$bin/rlprof" why "$run"
echo
echo "The demo has one fault on purpose: its calculator forgets one question of each step for a second."
echo
echo "Open $run/exports/report.html in a browser: where the time went, and what would help."
echo "The command rlprof is $bin/rlprof."
