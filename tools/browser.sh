# Sourced: get_browser_tests installs, from npm, what drives Chromium in the tests of pages, and says where it is.
BROWSER_ROOT="$root/build/browser"
export BROWSER_ROOT
get_browser_tests() {
  mkdir -p "$BROWSER_ROOT"
  # Specs that run side by side install it once.
  exec 9>"$BROWSER_ROOT/lock"
  flock 9
  cmp -s spec/browser/package-lock.json "$BROWSER_ROOT/package-lock.json" && [ -d "$BROWSER_ROOT/node_modules" ] && return
  cp spec/browser/package.json "$BROWSER_ROOT"
  # The lock file comes last: it tells that the installation is complete.
  cp spec/browser/package-lock.json "$BROWSER_ROOT/npm-shrinkwrap.json"
  (cd "$BROWSER_ROOT" && npm ci --no-audit --no-fund --loglevel=error) >&2 || return 1
  mv "$BROWSER_ROOT/npm-shrinkwrap.json" "$BROWSER_ROOT/package-lock.json"
}
