# An analyst with the rock: a file of addresses is screened, ended in the middle, and resumed; the results become a page.
. spec/packages/common.sh
cat >"$work/script" <<'SCRIPT'
apt-get install -q gcc make cmake pkg-config luarocks lua5.4 liblua5.4-dev lua-argparse lua-dbi-sqlite3 libcurl4-openssl-dev \
  libmicrohttpd-dev procps
luarocks --lua-version=5.4 make
cp examples/addresses.csv /tmp/
cd /tmp
status=0
riskscreen doctor >/tmp/doctor || status=$?
[ "$status" = 1 ] # no service is configured
riskscreen screen --sandbox --file addresses.csv -o whole.csv || status=$?
rows=$(grep -c . whole.csv)
[ "$rows" = "$(grep -c . addresses.csv)" ]
riskscreen screen --sandbox --file addresses.csv -o ended.csv --set rate_limit.rate=40 &
sleep 3
kill -9 $!
wait $! || true
riskscreen screen --sandbox --file addresses.csv -o ended.csv --resume || status=$?
cut -d, -f1-3 whole.csv | sort >a
cut -d, -f1-3 ended.csv | sort >b
diff a b
riskscreen report whole.csv -o page.html
grep -q '<html' page.html
printf 'riskscreen._VERSION\n' | riskscreen repl --sandbox --quiet
SCRIPT
sh tools/bare.sh "$work/script"
