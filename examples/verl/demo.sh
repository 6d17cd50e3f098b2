#!/usr/bin/env bash
# `make demo-verl`: train with the real verl, recorded by verl's own keys; then look at the run.
set -euo pipefail
python=$1
cd "$(dirname "$0")/../.."
bin=$(dirname "$python")
folder=$(mktemp -d) # the model, the data, and the log of verl
trap 'rm -rf "$folder"' EXIT
profiler=actor_rollout_ref.actor.profiler
keys=(
    global_profiler.tool=rlprof "global_profiler.steps=[3]" $profiler.enable=true
    $profiler.all_ranks=true $profiler.tool_config.torch.discrete=true
)

say() {
    local mark='' end=''
    if [ -t 1 ]; then mark=$'\033[1m' end=$'\033[0m'; fi
    printf '\n%s$ %s%s\n' "$mark" "$*" "$end"
}

say rlprof check examples/verl/grpo.yaml "${keys[@]}"
"$bin/rlprof" check examples/verl/grpo.yaml "${keys[@]}"
say python -m verl.trainer.main_ppo --config-dir examples/verl --config-name grpo "${keys[@]}"
echo "(two to three minutes; verl's own log is left out)"
if ! bash examples/verl/loop.sh "$python" "$folder" "${keys[@]}" trainer.total_training_steps=6 \
    global_profiler.save_path="$PWD/outputs/profile" >"$folder/log" 2>&1; then
    tail -n 40 "$folder/log" >&2
    exit 1
fi
sed -n 's/.*\(step:[0-9]*\) - .*\(critic\/score\/mean:[0-9.]*\).*\(timing_s\/step:[0-9.]*\).*/\1  \2  \3/p' "$folder/log"
run=$(ls -td outputs/profile/*/ | head -n 1)
run=${run%/}
say rlprof ls "$run"
"$bin/rlprof" ls "$run"
say rlprof export "$run" --to timeline,report
"$bin/rlprof" export "$run" --to timeline,report
say rlprof why "$run"
"$bin/rlprof" why "$run"
echo
echo "Open $run/exports/timeline.json.gz in https://ui.perfetto.dev (it stays on your machine), and"
echo "$run/exports/report.html in a browser. The command rlprof is $bin/rlprof."
