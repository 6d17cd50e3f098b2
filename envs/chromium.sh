#!/usr/bin/env bash
# Make .envs/chromium ready: Debian's headless Chromium, unpacked, never installed. Needs no root.
#
# apt fetches it, and the libraries that this machine lacks, with a state of its own into the cache
# of make_env.sh. No version is pinned: Debian's mirrors keep only the newest one.
# .envs/chromium/bin/chromium is the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
refuse() {
    echo "envs: Chromium: $1" >&2
    exit 1
}
key=$(sha256sum "$0" | cut -c1-16)
base=${RLPROF_ENV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rlprof/envs}/chromium-$key
mkdir -p "$root/.envs" "$(dirname "$base")"
ready() { ln -sfn "$base" "$root/.envs/chromium"; }
[ -e "$base/.complete" ] && ready && exit 0

for one in apt-get dpkg-deb; do
    command -v "$one" >/dev/null || refuse "comes from Debian's mirror; here is no $one"
done
exec 9>"$base.lock"
flock 9 # two checkouts at once fetch it once
[ -e "$base/.complete" ] && ready && exit 0
echo "envs: unpacking Chromium into $base (a minute, once)"
rm -rf "$base"
apt=$base/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$base/bin"
cat >"$apt/conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "$(id -un)";
Dir::State "$apt/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$apt/cache";
Debug::NoLocking "true";
CONF
fetch() { TMPDIR=$apt apt-get -c "$apt/conf" -qq "$@" >>"$apt/log" 2>&1; }
fetch update || refuse "apt-get update fails, see $apt/log"
fetch install --yes --download-only --reinstall --no-install-recommends chromium-headless-shell \
    || refuse "Debian's package cannot be fetched, see $apt/log"
for file in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$file" "$base"; done
rm -rf "${base:?}/usr/share/doc" "$apt/cache" "$apt/state"

libraries=$(find "$base/usr/lib" -name '*.so*' -not -path '*/lib/chromium/*' -printf '%h\n' | sort -u | paste -sd:)
cat >"$base/bin/chromium" <<WRAPPER
#!/bin/sh
export LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
exec "$base/usr/lib/chromium/chromium-headless-shell" "\$@"
WRAPPER
chmod +x "$base/bin/chromium"
"$base/bin/chromium" --version >>"$apt/log" 2>&1 || refuse "does not start here, see $apt/log"
rm -rf "$apt"
touch "$base/.complete"
ready
