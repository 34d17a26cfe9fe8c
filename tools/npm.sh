# Sourced: get_npm_packages NAME installs what spec/NAME/package.json lists below build/NAME, and prints that directory.
get_npm_packages() {
  npm_root="$root/build/$1"
  mkdir -p "$npm_root"
  # Specs that run side by side install it once.
  exec 9>"$npm_root/lock"
  flock 9
  if ! cmp -s "spec/$1/package-lock.json" "$npm_root/package-lock.json" || [ ! -d "$npm_root/node_modules" ]; then
    cp "spec/$1/package.json" "$npm_root"
    # The lock file comes last: it tells that the installation is complete.
    cp "spec/$1/package-lock.json" "$npm_root/npm-shrinkwrap.json"
    (cd "$npm_root" && npm ci --no-audit --no-fund --loglevel=error) >&2 || return 1
    mv "$npm_root/npm-shrinkwrap.json" "$npm_root/package-lock.json"
  fi
  echo "$npm_root"
}
