# Sourced by the scripts beside it: installs packages, builds, and points a Lua at this checkout.
set -eu
root=$(pwd)
# Jobs that run side by side. Most specs wait more than they work.
lanes=$(($(getconf _NPROCESSORS_ONLN) + 4))
all_luas="5.4 5.3 5.1 luajit"
# Takes less processor time than make, also for the builds of rocks and of example projects.
export CMAKE_GENERATOR=Ninja

compile_packages="gcc libc6-dev ninja-build cmake pkg-config libcurl4-openssl-dev libmicrohttpd-dev"
build_packages="$compile_packages liblua5.4-dev lua5.4 lua-argparse"
nginx_packages="nginx libnginx-mod-http-lua lua-resty-core lua-resty-lrucache lua-cjson"
test_packages="lua5.3 liblua5.3-dev lua5.1 liblua5.1-0-dev luajit2 libluajit2-5.1-dev lua-busted lua-socket lua-zlib luarocks
  lua-cqueues lua-expat lua-luv lua-posix lua-dbi-sqlite3
  make man-db g++ ccache clang libclang-rt-14-dev valgrind openssl procps curl redis-server redis-sentinel lua-nginx-redis chromium nodejs npm $nginx_packages"
lint_packages="lua-check luajit2 clang clang-format clang-tidy cppcheck shellcheck"
deb_packages="$build_packages build-essential debhelper lintian liblua5.3-dev liblua5.1-0-dev libluajit2-5.1-dev"
stylua_version=2.5.2

say() { printf '%s\n' "$*" >&2; }

# Installs the Debian packages that are missing; on another system names them and goes on.
need() {
  if ! command -v apt-get >/dev/null; then
    say "This is not a Debian system. Needed, by Debian's names: $*"
    return
  fi
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  missing=
  for package in "$@"; do
    case "
$installed
" in
    *"
$package installed
"*) ;;
    # A newer Node.js than Debian's brings its own npm.
    *) [ "$package" = npm ] && command -v npm >/dev/null || missing="$missing $package" ;;
    esac
  done
  [ -z "$missing" ] && return
  say "Installing:$missing"
  sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "Run as root, or install these packages first:$missing"; exit 1; }
    sudo=sudo
  fi
  log=$(mktemp)
  # shellcheck disable=SC2086
  if ! { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
    --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
  fi
  rm -f "$log"
}

# check_port COMMAND LOWEST PORT
check_port() {
  case $3 in
  *[!0-9]* | '' | ??????*) ;;
  *) [ "$3" -lt "$2" ] || [ "$3" -gt 65535 ] || return 0 ;;
  esac
  say "$1: PORT must be a whole number from $2 to 65535 (got '$3')"
  exit 2
}

# A checkout that was moved or copied brings builds of its old place, which cmake refuses.
for cache in build/*/CMakeCache.txt; do
  made_in=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache" 2>/dev/null) || continue
  [ "$(cd "${made_in:-/nowhere}" 2>/dev/null && pwd -P)" = "$(cd "${cache%/*}" && pwd -P)" ] || rm -rf "${cache%/*}"
done

# configure_preset NAME [OPTION...]: what CMakePresets.json says of it.
configure_preset() {
  [ "build/$1/build.ninja" -nt CMakePresets.json ] || {
    rm -f "build/$1/CMakeCache.txt" # it may be of another compiler or generator
    cmake --preset "$@"
  }
}

# build_preset NAME [OPTION...]: configures and builds it with options of `cmake --build`; prints nothing unless it fails.
build_preset() {
  mkdir -p build
  preset=$1 build_log="build/$1.log" launcher=
  shift
  # Presets share object files by ccache.
  ! command -v ccache >/dev/null || launcher="env;CCACHE_DIR=$root/build/ccache;ccache"
  if ! { configure_preset "$preset" "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" &&
    cmake --build "build/$preset" -j2 "$@"; } >"$build_log" 2>&1; then
    cat "$build_log" >&2
    return 1
  fi
}

# The names of the fuzzers. A build directory may still hold programs of fuzzers that were removed.
fuzzers() {
  cmake --build build/sanitize --target help | sed -n 's/^\([a-z_]*\)_fuzz: phony$/\1/p'
}

interpreter() {
  case $1 in
  5.4 | 5.3 | 5.1) echo "lua$1" ;;
  luajit) echo luajit ;;
  *) say "the Lua must be one of $all_luas (got '$1')"; return 2 ;;
  esac
}

# need_to_build LUA: the compiler, the libraries and the headers of that Lua.
need_to_build() {
  case $1 in
  5.1) lua_headers=liblua5.1-0-dev ;;
  luajit) lua_headers=libluajit2-5.1-dev ;;
  *) lua_headers=liblua$1-dev ;;
  esac
  # shellcheck disable=SC2086
  need $compile_packages $lua_headers
}

# build_to_run LUA: builds for that Lua, and points it at this checkout. The command needs argparse.
build_to_run() {
  interpreter "$1" >/dev/null
  need_to_build "$1"
  case $1 in
  luajit) need luajit2 lua-argparse ;;
  *) need "lua$1" lua-argparse ;;
  esac
  build_preset "$1"
  use_build "$1"
}

# Points LUA_PATH and LUA_CPATH at this checkout's Lua files and the modules of a preset.
use_build() {
  LUA_PATH="$root/lua/?.lua;$root/lua/?/init.lua;;"
  LUA_CPATH="$root/build/$1/?.so;;"
  export LUA_PATH LUA_CPATH
}
