# ./dev rock [DIRECTORY]: packs a source rock of the last commit into DIRECTORY, build/rock by default, without a network.
. tools/common.sh
need zip git
directory=${1:-build/rock}
mkdir -p "$directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --prefix=riskscreen/ -o "$work/riskscreen.tar.gz" HEAD
sed 's|^source = .*|source = { url = "riskscreen.tar.gz", dir = "riskscreen" }|' riskscreen-scm-1.rockspec >"$work/riskscreen-scm-1.rockspec"
rm -f "$directory/riskscreen-scm-1.src.rock"
output=$(cd "$directory" && pwd)
(cd "$work" && zip -q -X "$output/riskscreen-scm-1.src.rock" riskscreen.tar.gz riskscreen-scm-1.rockspec)
say "$directory/riskscreen-scm-1.src.rock"
