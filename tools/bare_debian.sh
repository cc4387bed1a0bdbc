#!/usr/bin/env bash
# Proves that a bare Debian 12 is enough: tools/bare_debian.sh DIR ["COMMAND" …]
#
# Makes a minimal Debian in DIR (which must be empty or absent), clones this repository's HEAD into it and
# runs the commands there by chroot: by default ./dev demo and ./dev test. Only this machine's way to packages
# goes along: its apt sources, certificates and pip configuration. Needs root and debootstrap. DIR stays, for
# a look; its mounts do not. What is printed, and what debootstrap says, is in build/bare_debian.log, also
# when something fails.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "needs root, for debootstrap and chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "needs debootstrap: apt-get install debootstrap" >&2; exit 2; }
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$(realpath -m "$1")
shift
[ $# -gt 0 ] || set -- "./dev demo" "./dev test"
[ -z "$(ls -A "$root" 2>/dev/null)" ] || { echo "$root is not empty" >&2; exit 2; }

log=$repository/build/bare_debian.log
mkdir -p "$repository/build"
: >"$log"
exec 3>&1 > >(tee -a "$log") 2>&1
tee=$!

mounts=()
cleanup() {
  local status=$? at
  for ((at = ${#mounts[@]} - 1; at >= 0; at--)); do umount "${mounts[at]}" || umount -l "${mounts[at]}"; done
  echo "bare Debian: exit $status; the log is $log"
  exec >&3 2>&3
  wait "$tee"
}
trap cleanup EXIT

# bind SOURCE: the same place in the chroot, read-only.
bind() {
  mkdir -p "$root$1"
  mount --bind "$1" "$root$1"
  mounts+=("$root$1")
  mount -o remount,bind,ro "$root$1"
}

# copy PATH…: those of this machine's files that exist, over the chroot's.
copy() {
  local path
  for path in "$@"; do
    [ -e "$path" ] || continue
    mkdir -p "$root$(dirname "$path")"
    rm -rf "${root:?}$path"
    cp -a "$path" "$root$path"
  done
}

# The mirror is the first one of this machine's apt sources, reached as apt reaches it.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null | awk '$2 == "bookworm" {print $1; exit}')
proxy=$(apt-config shell P Acquire::http::Proxy | sed "s/^P='\(.*\)'$/\1/")
started=$SECONDS
http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"} >>"$log" 2>&1 ||
  { tail -20 "$log" >&3; exit 1; }
copy /etc/apt /usr/share/keyrings /etc/ssl/certs /usr/local/share/ca-certificates /etc/pip.conf "$HOME/.config/pip" \
  "$HOME/.pip" /etc/resolv.conf /etc/hosts
mkdir -p "$root/proc" && mount -t proc proc "$root/proc" && mounts+=("$root/proc")
bind /dev
bind /dev/pts
bind /sys
# Package folders that pip's configuration names on this machine's own disk; an index "simple" links to its
# siblings.
for folder in $({ cat /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" 2>/dev/null; env | grep '^PIP_'; } |
  grep -oE '(file://|[ =])/[^ ]+' | sed -E 's#^(file://|[ =])##; s#/simple/?$##' | sort -u); do
  if [ -d "$folder" ]; then bind "$folder"; fi
done
git clone -q "$repository" "$root/millrace"
echo "bare Debian $(cat "$root/etc/debian_version") in $root after $((SECONDS - started)) s," \
  "$(dpkg-query --admindir="$root/var/lib/dpkg" -W | wc -l) packages, commit $(git -C "$repository" rev-parse --short HEAD)"

keep=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "TERM=${TERM:-dumb}")
while IFS= read -r variable; do keep+=("$variable"); done < <(env | grep -E '^(https?_proxy|no_proxy|PIP_|SSL_CERT_)')
status=0
for command in "$@"; do
  started=$SECONDS
  echo "--- $command"
  chroot "$root" /usr/bin/env -i "${keep[@]}" /bin/bash -c "cd /millrace && $command" || status=$?
  echo "--- $command: exit $status after $((SECONDS - started)) s"
  [ $status = 0 ] || break
done
exit $status
