#!/usr/bin/env bash
# Say why this host cannot have the environment `sglang`, and fail; silent where it can.
set -euo pipefail
here="$(uname -sm), $("${PYTHON:-python3}" --version)"
case $here in
"Linux x86_64, Python 3.11."* | "Linux x86_64, Python 3.12."*) ;;
*)
    echo "envs: SGLang for a CPU needs Linux on x86_64 and Python 3.11 or 3.12; here is $here" >&2
    exit 1
    ;;
esac
