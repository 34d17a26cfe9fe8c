# Sourced: get_browser_tests installs, from npm, what drives Chromium in the tests of pages, and says where it is.
BROWSER_ROOT="$root/build/browser"
export BROWSER_ROOT
get_browser_tests() {
  cmp -s spec/browser/package-lock.json "$BROWSER_ROOT/package-lock.json" && [ -d "$BROWSER_ROOT/node_modules" ] && return
  mkdir -p "$BROWSER_ROOT"
  cp spec/browser/package.json "$BROWSER_ROOT"
  # The lock file comes last: it tells that the installation is complete.
  cp spec/browser/package-lock.json "$BROWSER_ROOT/npm-shrinkwrap.json"
  (cd "$BROWSER_ROOT" && npm ci --no-audit --no-fund --loglevel=error) >&2
  mv "$BROWSER_ROOT/npm-shrinkwrap.json" "$BROWSER_ROOT/package-lock.json"
}
