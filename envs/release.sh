#!/usr/bin/env bash
# Print the Python of the environment NAME with another release of one package:
# envs/release.sh NAME PACKAGE==VERSION. The environment NAME is there; the other sees all of it.
set -euo pipefail
envs=$(cd "$(dirname "$0")/.." && pwd)/.envs
env=$envs/$2
purelib() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
if [ ! -e "$env/.ready" ]; then
    rm -rf "$env"
    "$envs/$1/bin/python" -m venv --without-pip "$env"
    site=$(purelib "$env")
    echo "import site; site.addsitedir('$(purelib "$envs/$1")')" >"$site/rlprof_other.pth"
    deps=--no-deps
    case $2 in torch==*) deps= ;; esac # it brings the CUDA that it needs to be imported, 7 GB
    "$env/bin/python" -m pip --disable-pip-version-check -q install $deps --ignore-installed "$2" >&2
    rm -rf "$site/tests" # verl's wheel has its own, which would hide ours
    touch "$env/.ready"
fi
echo "$env/bin/python"
