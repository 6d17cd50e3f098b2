#!/usr/bin/env bash
# Build every distribution into the folder given, check it, and install the product as an index would.
#
# PYTHON is the interpreter of .envs/dist. No index is asked for anything of ours: the new
# environment takes our distributions from that folder and third-party packages from .envs/test.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
out=$1
python=$PYTHON
rm -rf "$out"
mkdir -p "$out"
export RLPROF_RELEASE=1
for folder in "$root/core" "$root"/plugins/*/ "$root"; do
    echo "building $(basename "$folder")"
    "$python" -m build --no-isolation --outdir "$out" "$folder" >"$out/log" 2>&1 || {
        cat "$out/log" >&2
        exit 1
    }
done
rm "$out/log"
"$python" -m twine check --strict "$out"/*

versions=$(for file in "$out"/*.whl; do basename "$file" | cut -d- -f2; done | sort -u)
[ "$(echo "$versions" | wc -l)" = 1 ] || {
    echo "envs: the distributions have more than one version:" $versions >&2
    exit 1
}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
"$python" -m venv "$new/env"
site=$("$new/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$root"/.envs/test/lib/python*/site-packages/rlprof_base.pth "$site"
pip=("$new/env/bin/python" -m pip --disable-pip-version-check -q install --no-index --find-links "$out")
"${pip[@]}" "rlprof==$versions"
(cd "$new" && env/bin/rlprof --version && env/bin/rlprof plugins)
"${pip[@]}" "rlprof[all]==$versions" rlprof-testing
(cd "$new" && env/bin/rlprof plugins)
echo "$(ls "$out" | wc -l) files of version $versions are in $out"
