#!/usr/bin/env bash
# Make the environment `trl` ready: TRL's own packages, on top of those of the environment `vllm`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
envs=$(dirname "$here")/.envs
"$here/vllm.fits.sh"
"$here/make_env.sh" vllm
"$here/make_env.sh" trl
site=$("$envs/trl/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cat "$envs"/vllm/lib/python*/site-packages/rlprof_base.pth >"$site/rlprof_vllm.pth"
