# ./dev platforms [NAME...]: builds and tests the library for other processors, C libraries and versions; all by default.
#
#   i386 arm64 armhf s390x   C tests and specs under qemu-user, with that processor's packages
#   curl-oldest curl-newest  the specs of transfers with Debian 11's libcurl and with that of Debian's backports
#   musl                     the parts without libcurl, linked statically with musl
#   lua32                    a Lua with 32-bit numbers, which is refused
#   compilers                gcc and clang, strict C11, without and with most optimization
#
# ./dev platforms curl=DIR: the specs of transfers with the libcurl of a prefix, DIR/include and DIR/lib.
#
# Other packages are unpacked below ~/.cache/riskscreen. Those of this machine stay as they are.
. tools/common.sh
platforms=$root/build/platforms
trees=${XDG_CACHE_HOME:-$HOME/.cache}/riskscreen # outside of the checkout, whose tools would walk through it
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort -u | head -n 1)
cross_packages="mmdebstrap qemu-user-static"
tree_packages="libc6-dev,lua5.4,liblua5.4-dev,lua-argparse,lua-busted,lua-socket,lua-expat,lua-cjson,libcurl4-openssl-dev,libmicrohttpd-dev"

# The specs of numbers, bytes, sizes and times. curl_specs are those of transfers.
machine_specs="spec/unit/core spec/unit/address spec/unit/json spec/unit/journal spec/unit/lists spec/fuzz
  spec/contract/in_process_spec.lua spec/contract/http_spec.lua"
curl_specs="spec/unit/core/loop_spec.lua spec/unit/core/transfer_spec.lua spec/unit/core/transfer_tls_spec.lua
  spec/unit/runtime/native spec/contract"

# unpack NAME PROCESSOR SUITE PACKAGES [PREFERRED]: a tree of packages, which are not configured; from the suite PREFERRED
# where it has them.
unpack() {
  tree=$trees/$1
  [ -e "$tree/unpacked" ] && return
  rm -rf "$tree"
  mkdir -p "$trees"
  mmdebstrap --quiet --variant=extract --architectures="$2" --include="$4" \
    ${5:+--aptopt="APT::Default-Release \"$5\""} "$3" "$tree" "deb $mirror $3 main" ${5:+"deb $mirror $5 main"}
  rm -rf "${tree:?}/dev"
  touch "$tree/unpacked"
}

# configure NAME OPTION...: builds in build/platforms/NAME.
configure() {
  name=$1
  shift
  if ! { cmake -S . -B "$platforms/$name" -DRISKSCREEN_WERROR=ON "$@" && cmake --build "$platforms/$name" -j2; } \
    >"$platforms/$name.log" 2>&1; then
    tail -n 30 "$platforms/$name.log" >&2
    return 1
  fi
}

# run_specs LUA BUSTED PATH...
run_specs() {
  lua=$1 busted=$2
  shift 2
  log=$platforms/specs.log
  find "$@" -name '*_spec.lua' | sort | RISKSCREEN_LUA=$lua xargs -n 4 "$lua" "$busted" --output=plainTerminal >"$log" ||
    { grep -v '^[-+*]*$' "$log"; return 1; }
  grep '^[0-9]* success' "$log"
}

# emulate NAME TRIPLET QEMU
emulate() {
  # shellcheck disable=SC2086
  need $cross_packages "gcc-$(echo "$2" | sed 's/^i386/i686/; s/_/-/')"
  compiler=$(echo "$2" | sed 's/^i386/i686/')-gcc
  unpack "$1" "$1" bookworm "$tree_packages"
  emulator=qemu-$3-static
  cat >"$platforms/$1.cmake" <<TOOLCHAIN
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER $compiler)
set(CMAKE_SYSROOT $tree)
set(CMAKE_LIBRARY_ARCHITECTURE $2)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR "$emulator;-L;$tree")
TOOLCHAIN
  PKG_CONFIG_LIBDIR=$tree/usr/lib/$2/pkgconfig:$tree/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$tree \
    configure "$1" -DCMAKE_TOOLCHAIN_FILE="$platforms/$1.cmake" -DCMAKE_CXX_COMPILER=NOTFOUND \
    -DRISKSCREEN_TESTS=ON -DRISKSCREEN_STATIC=ON "-DRISKSCREEN_PARTS=library;decoder"
  ctest --test-dir "$platforms/$1" --output-on-failure --timeout 600 >"$platforms/$1-ctest.log" ||
    { tail -n 30 "$platforms/$1-ctest.log"; return 1; }
  printf '#!/bin/sh\nexec %s -L %s %s/usr/bin/lua5.4 "$@"\n' "$emulator" "$tree" "$tree" >"$platforms/$1-lua"
  chmod +x "$platforms/$1-lua"
  export LUA_PATH="$root/lua/?.lua;$root/lua/?/init.lua;$tree/usr/share/lua/5.4/?.lua;$tree/usr/share/lua/5.4/?/init.lua;./?.lua"
  export LUA_CPATH="$platforms/$1/?.so;$tree/usr/lib/$2/lua/5.4/?.so"
  # shellcheck disable=SC2086
  run_specs "$platforms/$1-lua" "$tree/usr/bin/busted" $machine_specs
}

# with_curl NAME INCLUDE LIB
with_curl() {
  run_path="-Wl,--disable-new-dtags,-rpath,$3"
  configure "$1" -DCURL_INCLUDE_DIR="$2" -DCURL_LIBRARY="$3/libcurl.so" -DRISKSCREEN_TESTS=ON \
    -DCMAKE_MODULE_LINKER_FLAGS="$run_path" -DCMAKE_EXE_LINKER_FLAGS="$run_path"
  # The answers that nobody asked for: libcurl looks for them itself from 8.0.0 on.
  ctest --test-dir "$platforms/$1" --output-on-failure -R '^rest' >"$platforms/$1-ctest.log" ||
    { tail -n 30 "$platforms/$1-ctest.log"; return 1; }
  grep 'tests passed' "$platforms/$1-ctest.log"
  use_build "platforms/$1"
  lua5.4 -e 'print(require("riskscreen.core").curl_version)'
  # shellcheck disable=SC2086
  run_specs lua5.4 /usr/bin/busted $curl_specs
}

# curl_of NAME SUITE [PREFERRED]: the libcurl of a suite.
curl_of() {
  # shellcheck disable=SC2086
  need $cross_packages
  unpack "$1" amd64 "$2" libcurl4-openssl-dev "${3:-}"
  # Beside libcurl's headers are those of the suite's C library.
  mkdir -p "$platforms/$1-include"
  ln -sfn "$tree/usr/include/x86_64-linux-gnu/curl" "$platforms/$1-include/curl"
  with_curl "$1" "$platforms/$1-include" "$tree/usr/lib/x86_64-linux-gnu"
}

# The parts without libcurl, with musl: what the C tests of numbers, texts, digests and timers cover.
musl() {
  need musl-tools
  mkdir -p "$platforms/musl"
  flags="-std=c11 -D_GNU_SOURCE -DNDEBUG -O2 -Wall -Wextra -Wconversion -Werror -Icsrc -static"
  for portable in "" -DRSC_PORTABLE=1; do
    for test in scan number key_cache digest timers; do
      # shellcheck disable=SC2086
      musl-gcc $flags $portable -o "$platforms/musl/$test" "spec/c/${test}_test.c" csrc/base/*.c csrc/json/*.c \
        csrc/lists/*.c csrc/http/timers.c -lm -lpthread
      "$platforms/musl/$test"
    done
  done
}

# A Lua of Debian's source package, built with 32-bit numbers.
lua32() {
  need dpkg-dev gcc make
  directory=$trees/lua32
  if [ ! -x "$directory/lua" ]; then
    rm -rf "$directory"
    mkdir -p "$directory/lists/partial"
    echo "deb-src $mirror bookworm main" >"$directory/sources.list"
    set -- -o Dir::Etc::SourceList="$directory/sources.list" -o Dir::Etc::SourceParts=/dev/null \
      -o Dir::State::Lists="$directory/lists" -q
    (cd "$directory" && apt-get "$@" update && apt-get "$@" source lua5.4) >"$directory/log" 2>&1
    sed -i 's/^#define LUA_32BITS[[:space:]]*0/#define LUA_32BITS 1/' "$directory"/lua5.4-*/src/luaconf.h
    rm "$directory"/lua5.4-*/src/luac.c
    gcc -O1 -w -DLUA_USE_LINUX -o "$directory/lua" "$directory"/lua5.4-*/src/*.c -lm -Wl,-E
  fi
  LUA_PATH="$root/lua/?.lua;$root/lua/?/init.lua" "$directory/lua" -e '
    assert(math.maxinteger == 2147483647)
    local loaded, message = pcall(require, "riskscreen")
    assert(not loaded and message:find("64-bit integers and doubles", 1, true), message)
    print(message)'
  build_preset 5.4
  use_build 5.4
  "$directory/lua" -e '
    local loaded, message = pcall(require, "riskscreen.core")
    assert(not loaded, "the core was loaded")
    print(message)'
  for file in csrc/lua/*.c; do
    if gcc -std=c11 -D_GNU_SOURCE -Icsrc -isystem "$(echo "$directory"/lua5.4-*/src)" -fsyntax-only "$file" 2>"$directory/log"; then
      say "$file compiles for a Lua with 32-bit numbers"
      return 1
    fi
    grep -q '64-bit integers and doubles' "$directory/log"
  done
}

# Both compilers, strict C11, without and with most optimization.
compilers() {
  need clang
  for compiler in gcc clang; do
    for level in -O0 -O2 -O3; do
      configure "$compiler$level" -DCMAKE_C_COMPILER=$compiler -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="$level -std=c11 -pedantic-errors -Wno-error=pedantic"
    done
  done
}

platform() {
  case $1 in
  i386) emulate i386 i386-linux-gnu i386 ;;
  arm64) emulate arm64 aarch64-linux-gnu aarch64 ;;
  armhf) emulate armhf arm-linux-gnueabihf arm ;;
  s390x) emulate s390x s390x-linux-gnu s390x ;;
  curl-oldest) curl_of curl-oldest bullseye ;;
  curl-newest) curl_of curl-newest bookworm bookworm-backports ;;
  musl | lua32 | compilers) "$1" ;;
  curl=*) with_curl curl "${1#curl=}/include" "${1#curl=}/lib" ;;
  *) say "platforms: unknown platform '$1'"; exit 2 ;;
  esac
}
mkdir -p "$platforms"
[ $# -gt 0 ] || set -- i386 arm64 armhf s390x curl-oldest curl-newest musl lua32 compilers
for name in "$@"; do
  say "== $name"
  (platform "$name")
done
