#!/usr/bin/env bash
# Print a folder that has another release of verl, `verl_wheel.sh 0.8.0`: set PYTHONPATH to it.
set -euo pipefail
envs=$(cd "$(dirname "$0")/.." && pwd)/.envs
folder=$envs/verl-$1
if [ ! -d "$folder/verl" ]; then
    rm -rf "$folder"
    "$envs/verl/bin/python" -m pip install --quiet --no-deps --target "$folder" "verl==$1" >&2
    rm -rf "$folder/tests" # else they hide ours
fi
echo "$folder"
