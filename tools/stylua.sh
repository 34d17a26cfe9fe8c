# Sourced: get_stylua installs StyLua (its WebAssembly build, from npm) under build/ and says where it is.
STYLUA_ROOT="$root/build/stylua"
export STYLUA_ROOT
get_stylua() {
  grep -qs "\"version\": \"$stylua_version\"" "$STYLUA_ROOT/node_modules/@johnnymorganz/stylua/package.json" && return
  mkdir -p "$STYLUA_ROOT"
  (cd "$STYLUA_ROOT" &&
    npm install --no-audit --no-fund --no-save --loglevel=error "@johnnymorganz/stylua@$stylua_version") >&2
}
