# Runs a script in a bare Debian 12, as on a new user's machine: sh tools/bare.sh SCRIPT [FILE...]
#
# The script runs as root, by sh -eu, in a directory that holds the FILEs, or this checkout's files if none is given.
# When it ends, its processes and its system are removed; BARE_KEEP=1 keeps the system and prints where it is. Files
# that the script leaves in /root/out are copied to the directory BARE_OUT. `sudo` is there, and only runs its command;
# apt-get has current lists, and asks no questions.
# Needs root and debootstrap. The system is made once, below ${TMPDIR:-/tmp}, and copied for each run.
. tools/common.sh
[ $# -gt 0 ] || { sed -n '/^#/!q; s/^# \{0,1\}//p' tools/bare.sh >&2; exit 2; }
[ "$(id -u)" = 0 ] || { say "bare: run as root, for debootstrap and chroot"; exit 1; }
script=$1
shift
need debootstrap
cache=${TMPDIR:-/tmp}/riskscreen-bare
mkdir -p "$cache/archives"
(
  flock 9
  [ ! -e "$cache/ready" ] || exit 0
  rm -rf "$cache/base"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$cache/base" >"$cache/log" 2>&1 || {
    tail -n 5 "$cache/log" >&2
    exit 1
  }
  printf '#!/bin/sh\nexec "$@"\n' >"$cache/base/usr/local/bin/sudo"
  chmod +x "$cache/base/usr/local/bin/sudo"
  touch "$cache/ready"
) 9>"$cache/lock"
system=$(mktemp -d "$cache/run.XXXXXX")
finish() {
  # Downloaded packages are kept for the next run.
  cp -ln "$system"/var/cache/apt/archives/*.deb "$cache/archives/" 2>/dev/null || true
  [ -z "${BARE_OUT:-}" ] || cp -a "$system/root/out/." "$BARE_OUT/" 2>/dev/null || true
  if [ -n "${BARE_KEEP:-}" ]; then say "kept: $system"; else rm -rf --one-file-system "$system"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
cp -a "$cache/base/." "$system/"
cp -l "$cache"/archives/*.deb "$system/var/cache/apt/archives/" 2>/dev/null || true
# This machine's way to the packages: its name servers, and its apt's sources and proxies.
cp /etc/resolv.conf /etc/hosts "$system/etc/"
cp -r /etc/apt/apt.conf.d/. "$system/etc/apt/apt.conf.d/"
rm -f "$system"/etc/apt/apt.conf.d/docker-* # these remove downloaded packages
cat >"$system/etc/apt/apt.conf.d/99bare" <<'TEXT'
Acquire::Languages "none";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
TEXT
if ls /etc/apt/sources.list.d/* >/dev/null 2>&1; then
  cp -r /etc/apt/sources.list.d/. "$system/etc/apt/sources.list.d/"
  : >"$system/etc/apt/sources.list"
fi
mkdir -p "$system/root/project" "$system/root/out"
if [ $# -gt 0 ]; then
  cp -a --no-preserve=ownership "$@" "$system/root/project/"
else
  git ls-files -z | xargs -0 tar cf - | tar xf - --no-same-owner -C "$system/root/project"
fi
cp "$script" "$system/root/script"
# The processes and the mounts live in namespaces of their own and end with them. With pivot_root, not chroot, services
# can have user namespaces there.
unshare --mount --pid --fork --kill-child --propagation private sh -euc '
  mount --bind "$1" "$1"
  cd "$1"
  mount -t proc proc proc
  mount --rbind /dev dev
  pivot_root . .
  umount -l .
  exec chroot . env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    sh -euc "apt-get update -q >/dev/null; cd /root/project; exec sh -eu /root/script"
' sh "$system"
