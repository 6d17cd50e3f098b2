#!/usr/bin/env bash
# `make demo`: train on Ray, profiled by profile.yaml; then look at the run. Where Ray cannot start
# the loop without it is shown instead, and that is said; under CI it is an error.
set -euo pipefail
python=$1
cd "$(dirname "$0")/../.."
bin=$(dirname "$python")
own=$(mktemp -d) # the engine is installed here: the environment stays as it is
trap 'rm -rf "$own"' EXIT
"$python" -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation --no-index \
    --target "$own/site" examples/third_party_engine
export PYTHONPATH="$own/site${PYTHONPATH:+:$PYTHONPATH}"
export RAY_raylet_start_wait_time_s=${RAY_raylet_start_wait_time_s:-120}
no_ray=69 # how train.py ends where Ray cannot start

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
warn() { printf '\n\033[1;31m%s\033[0m\n' "$*" >&2; }

say rlprof check examples/ray_rl/profile.yaml
"$bin/rlprof" check examples/ray_rl/profile.yaml
say rlprof plan examples/ray_rl/profile.yaml --steps 1-6 --no-estimate
"$bin/rlprof" plan examples/ray_rl/profile.yaml --steps 1-6 --no-estimate
say python examples/ray_rl/train.py --config examples/ray_rl/profile.yaml
code=0
{ "$python" examples/ray_rl/train.py --config examples/ray_rl/profile.yaml \
    2>&1 >&3 | tee "$own/stderr" >&2; } 3>&1 || code=$?
if [ "$code" = "$no_ray" ]; then
    reason=$(grep '^Ray cannot start' "$own/stderr")
    case ${CI:-} in
    '' | 0 | false) ;;
    *)
        warn "demo: $reason; under CI that is an error"
        exit 1
        ;;
    esac
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
say rlprof export "$run" --to timeline
"$bin/rlprof" export "$run" --to timeline
echo
echo "Open $run/exports/timeline.json.gz in https://ui.perfetto.dev (it stays on your machine)."
echo "It has the driver's steps and phases, the operators of both trainers, the iterations of both"
echo "engines, and every trajectory of the agent with its turns, requests and tool calls."
