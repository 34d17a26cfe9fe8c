# Sourced by the tests beside it, which ./dev packages runs.
. tools/common.sh
page=docs/install.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# section HEADING: the commands of one section of docs/install.md, as a script that compares their output.
section() {
  lua5.4 spec/packages/section.lua $page "$1"
}
