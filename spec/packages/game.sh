# A game developer: the C and C++ programs of docs/embedding.md, then games in Lua with the installed library, one in the
# loop of luv.
. spec/packages/common.sh
page=docs/embedding.md
{
  echo "apt-get install -q $(sed -n 's/^The commands need `\(.*\)` of Debian.*/\1/p' $page)"
  for heading in Embedding "A game that runs scripts" "A C++ program" "Several threads"; do
    section "$heading"
  done
  page=docs/install.md
  section "CMake"
  cat <<'SCRIPT'
apt-get install -q lua-socket lua-luv
cp examples/*.lua /srv/
cd /srv
for game in game_loop with_luv with_poll; do
  lua5.4 $game.lua | tee printed
  grep -q 'block' printed
done
SCRIPT
} >"$work/script"
sh tools/bare.sh "$work/script"
