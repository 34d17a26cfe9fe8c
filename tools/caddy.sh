# Sourced: get_caddy puts Debian's Caddy under build/ and says where it is. The package is unpacked and not installed,
# because it would start a service on port 80.
CADDY="$root/build/caddy/usr/bin/caddy"
export CADDY
get_caddy() {
  mkdir -p "$root/build/caddy"
  # Specs that run side by side get it once.
  exec 9>"$root/build/caddy/lock"
  flock 9
  [ -x "$CADDY" ] && return
  (cd "$root/build/caddy" && rm -f ./*.deb &&
    { apt-get download -q caddy || { apt-get update -q && apt-get download -q caddy; }; } &&
    dpkg-deb -x ./*.deb . && rm ./*.deb) >&2
}
