#!/usr/bin/env bash
# Make the environment NAME ready: envs/make_env.sh NAME. A second call finds it ready.
#
# Third-party packages live in a cache outside the checkout, under a key of their pins, so that
# fresh clones share them; losing the cache costs time and nothing else. The checkout's own
# packages live in .envs/NAME, an environment that sees the cached one through a .pth file.
set -euo pipefail
name=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "envs: $("$python" --version) is too old; rlprof needs 3.10: make PYTHON=python3.12 ..." >&2
    exit 1
}
key=$({ "$python" -VV; cat "$here/$name.in" "$here/$name.txt" "$0"; } | sha256sum | cut -c1-16)
base=${RLPROF_ENV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlprof/envs}/$name-$key
env=$root/.envs/$name
stamp=$env/.ready-$key-$(cat "$root"/core/pyproject.toml "$root"/plugins/*/pyproject.toml | sha256sum | cut -c1-16)
[ -e "$stamp" ] && exit 0

mkdir -p "$(dirname "$base")"
exec 9>"$base.lock"
flock 9 # two checkouts at once make it once
if [ ! -e "$base/.complete" ]; then
    echo "envs: installing $name into $base (a few minutes, once)"
    rm -rf "$base"
    "$python" -m venv "$base"
    constraints=$(grep -v '^torch==' "$here/$name.txt" || true)
    pip() { "$base/bin/python" -m pip --disable-pip-version-check -q "$@"; }
    # torch first and alone: with it there, nothing else asks the index for a build with CUDA.
    torch=$(grep '^torch==' "$here/$name.txt" || true)
    [ -z "$torch" ] || pip install "$torch" -c <(echo "$constraints")
    if [ -e "$here/$name.no-deps.txt" ]; then pip install --no-deps -r "$here/$name.no-deps.txt"; fi
    pip install -r "$here/$name.in" -c "$here/$name.txt"
    touch "$base/.complete"
fi
flock -u 9

rm -rf "$env"
"$python" -m venv --without-pip "$env"
site=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/rlprof_base.pth"
packages=(-e "$root/core")
for plugin in "$root"/plugins/*/; do packages+=(-e "$plugin"); done
"$env/bin/python" -m pip --disable-pip-version-check -q install --no-deps --no-build-isolation \
    "${packages[@]}"
touch "$stamp"
