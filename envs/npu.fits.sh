#!/usr/bin/env bash
# Say why this host cannot have the environment `npu`, and fail; silent where it can.
set -euo pipefail
here="$(uname -sm), $("${PYTHON:-python3}" --version)"
case $here in
"Linux x86_64, Python 3.11."* | "Linux x86_64, Python 3.12."*) ;;
*)
    echo "envs: torch_npu's wheel for this job needs Linux on x86_64 and Python 3.11 or 3.12; here is $here" >&2
    exit 1
    ;;
esac
for tool in gcc nm strings; do
    command -v "$tool" >/dev/null || {
        echo "envs: the libraries that stand in for CANN need $tool, which is not here" >&2
        exit 1
    }
done
