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

# The mirror of the system's own component main, asked for non-free as well; the rest of what the
# machine has set up (proxies, passwords, keys) stays in force, but for what it runs after an update.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
apt-get indextargets 'Created-By: Packages' "Component: main" "Release: $release" \
    --format '$(REPO_URI) $(TRUSTED) $(SIGNED_BY)' | sort -u | while read -r uri trusted key; do
    how="arch=amd64"
    [ "$trusted" != yes ] || how+=" trusted=yes"
    case $key in /*) how+=" signed-by=$key" ;; esac
    echo "deb [$how] $uri $release main non-free"
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

# Debian has parted the two folders, and nsys looks for its importer beside itself; the importer
# looks for libraries there.
parted=$base/usr/lib/x86_64-linux-gnu
ln -s ../../nsight-systems/host-linux-x64 "$parted/nsight-systems/host-linux-x64"
ln -s ../../x86_64-linux-gnu/libpfm.so.4 "$base/usr/lib/nsight-systems/host-linux-x64/"
ln -s ../usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys "$base/bin/nsys"
nsys=$base/bin/nsys
lacking=$(ldd "$nsys" "$parted/nsight-systems/host-linux-x64/QdstrmImporter" \
    | awk '/not found/ {print $1}' | sort -u | xargs)
[ -z "$lacking" ] || refuse "lacks on this machine: $lacking"
"$nsys" --version >>"$apt/log"

window() { # one window of an idle process: true if its report is there
    local session=rlprof-env-$$-$1 python=${PYTHON:-python3}
    rm -f "$apt/dry.nsys-rep"
    timeout 60 "$nsys" launch --session-new="$session" -t nvtx "$python" -c 'import time; time.sleep(30)' &
    for _ in $(seq 50); do
        "$nsys" sessions list | grep -q "$session" && break
        sleep 0.1
    done
    timeout 20 "$nsys" start --session="$session" --sample=none --cpuctxsw=none -o "$apt/dry" \
        && timeout 60 "$nsys" stop --session="$session" || true
    timeout 20 "$nsys" shutdown --session="$session" --kill=sigterm || true
    wait
    # A start that failed leaves its agent; nobody else's has this session.
    pgrep -f -- "--session-name=$session( |\$)" | xargs -r kill -9 || true
    [ -s "$apt/dry.nsys-rep" ]
}
for attempt in 1 2 3 4 5 6 7 8; do # it races with itself at the start, on a busy machine
    window "$attempt" </dev/null >>"$apt/log" 2>&1 && break
    [ "$attempt" -lt 8 ] || refuse "cannot record here, see $apt/log"
done
rm -rf "$apt"
touch "$base/.complete"
ready
