#!/usr/bin/env bash
# Make .envs/nsys ready: Debian's Nsight Systems, unpacked, never installed. Needs no root.
#
# apt fetches it with a state of its own, from the mirror this machine is set up with, into the
# cache of make_env.sh; what is there has recorded one window. .envs/nsys/bin/nsys is the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
refuse() { # where nothing can be done about it
    echo "envs: Nsight Systems: $1" >&2
    exit 1
}
key=$(cat "$here/nsys.txt" "$0" | sha256sum | cut -c1-16)
base=${RLPROF_ENV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlprof/envs}/nsys-$key
mkdir -p "$root/.envs" "$(dirname "$base")"
ready() { ln -sfn "$base" "$root/.envs/nsys"; }
[ -e "$base/.complete" ] && ready && exit 0

for one in apt-get dpkg dpkg-deb; do
    command -v "$one" >/dev/null || refuse "comes from Debian's mirror; here is no $one"
done
arch=$(dpkg --print-architecture)
[ "$arch" = amd64 ] || refuse "only amd64 has it; here is $arch"
exec 9>"$base.lock"
flock 9 # two checkouts at once fetch it once
[ -e "$base/.complete" ] && ready && exit 0
echo "envs: unpacking Nsight Systems into $base (a minute, once)"
rm -rf "$base"
apt=$base/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$base/bin"
export TMPDIR=$apt # of apt, of nsys

# The mirror of the system's own component main, asked for Debian 13's non-free as well; the rest of
# what the machine has set up (proxies, passwords, keys) stays in force, but for what it runs after an
# update.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
apt-get indextargets 'Created-By: Packages' "Component: main" "Release: $release" \
    --format '$(REPO_URI) $(TRUSTED) $(SIGNED_BY)' | sort -u | while read -r uri trusted key; do
    how="arch=amd64"
    [ "$trusted" != yes ] || how+=" trusted=yes"
    case $key in /*) how+=" signed-by=$key" ;; esac
    echo "deb [$how] $uri $release main"
    echo "deb [$how] $uri trixie non-free"
done >"$apt/sources.list"
[ -s "$apt/sources.list" ] || refuse "comes from Debian's mirror; apt knows none for $release here"
cat >"$apt/conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "$(id -un)";
Dir::State "$apt/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$apt/cache";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
CONF
fetch() { (cd "$apt" && apt-get -c "$apt/conf" -qq "$@") >>"$apt/log" 2>&1; }
fetch update || refuse "apt-get update fails, see $apt/log"
grep -v '^#' "$here/nsys.txt" | while read -r package version sum; do
    fetch download "$package=$version" || refuse "$package $version is not to be had, see $apt/log"
    echo "$sum *$(ls "$apt/$package"_*.deb)" | sha256sum --check --quiet >>"$apt/log" 2>&1 \
        || refuse "$package is not the file that envs/nsys.txt names"
done
fetch download libssh-4 libpfm4 || refuse "its libraries are not to be had, see $apt/log"
for file in "$apt"/*.deb; do dpkg-deb -x "$file" "$base"; done
rm -rf "${base:?}/usr/share" "$apt"/*.deb "$apt/state" "$apt/cache"

# Debian has parted the two folders: nsys looks beside itself for its importer, that beside itself for
# libraries, and `nsys stats` for its Python.
parted=$base/usr/lib/x86_64-linux-gnu/nsight-systems
host=$base/usr/lib/nsight-systems/host-linux-x64
ln -s ../../nsight-systems/host-linux-x64 "$parted/host-linux-x64"
ln -s ../../x86_64-linux-gnu/libpfm.so.4 "$host/"
ln -sf "$parted"/target-linux-x64/python/lib/*.py "$host/python/lib/"
ln -s ../usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys "$base/bin/nsys"
nsys=$base/bin/nsys
lacking=$(ldd "$nsys" "$host/QdstrmImporter" | awk '/not found/ {print $1}' | sort -u | xargs)
[ -z "$lacking" ] || refuse "lacks on this machine: $lacking"
"$nsys" --version >>"$apt/log"

window() { # one window of an idle process
    local session=rlprof-env-$$ python=${PYTHON:-python3}
    timeout 60 "$nsys" launch --session-new="$session" -t nvtx "$python" -c 'import time; time.sleep(30)' &
    for _ in $(seq 100); do
        "$nsys" sessions list | grep -q "$session" && break
        sleep 0.1
    done
    timeout 20 "$nsys" start --session="$session" --sample=none --cpuctxsw=none -o "$apt/dry" \
        && timeout 60 "$nsys" stop --session="$session" || true
    timeout 20 "$nsys" shutdown --session="$session" --kill=sigterm || true
    wait
}
window </dev/null >>"$apt/log" 2>&1
[ -s "$apt/dry.nsys-rep" ] || refuse "cannot record here, see $apt/log"
rm -rf "$apt"
touch "$base/.complete"
ready
