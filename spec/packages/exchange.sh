# A programmer of an exchange: the rock, programs of their own in another directory, a payout that outlives SIGKILL, cqueues,
# and specs by busted with the sandbox.
. spec/packages/common.sh
page=README.md
section "Install" | sed '/^\.\/dev/d' >"$work/script"
cat >>"$work/script" <<'SCRIPT'
apt-get install -q lua-busted lua-cqueues curl
mkdir /srv/exchange
cp examples/kyt_webhook.lua examples/with_cqueues.lua /srv/exchange/
cd /srv/exchange
lua5.4 kyt_webhook.lua | tee printed
grep -q '^submitted' printed
grep -q '^received' printed
lua5.4 with_cqueues.lua | sort | tee printed
grep -q '^high-eth	block' printed
grep -q '^clean-eth	allow' printed

# Answers for addresses of their own, from a file, over HTTP.
echo '{ "0x52908400098527886E0F7030069857D2E4169EE7": { "level": "high", "type": "mixer" } }' >answers.json
riskscreen sandbox --port 8081 --answers answers.json &
curl -s -o /dev/null --retry 20 --retry-delay 1 --retry-connrefused 127.0.0.1:8081
cat >client.lua <<'LUA'
local riskscreen = require "riskscreen"
return riskscreen.new {
  base_url = "http://127.0.0.1:8081",
  access_key = "sandbox-key",
  account = "exchange",
  store = assert(riskscreen.store.sqlite "payouts.db"),
  journal = assert(riskscreen.journal.file "decisions.jsonl"),
  endpoints = { kyt_result = { method = "GET", path = "/sandbox/v1/kyt/result" } },
}
LUA
cat >screen.lua <<'LUA'
local client = require "client"
local mixer = "0x52908400098527886E0F7030069857D2E4169EE7"
for decision in client:screen_all { source = { { address = mixer, id = "w-17" } }, network = "eth" } do
  print(decision.action, decision.id, decision.record.risks[1].riskType)
end
client:close()
LUA
lua5.4 screen.lua | tee printed
[ "$(cat printed)" = "block	w-17	mixer" ]
grep -q '"w-17"' decisions.jsonl
riskscreen journal verify decisions.jsonl

# The program is killed after the submission. The next one submits nothing again, and gets the result.
cat >submit.lua <<'LUA'
local client = require "client"
local payout = { network = "eth", hash = "0x5f16", direction = "sent", customId = "payout-4" }
local transaction, response = assert(client.kyt:submit(payout))
print(transaction.requestId, response.kept)
io.stdout:flush()
if arg[1] == "die" then
  require("posix.signal").raise(9)
end
print(assert(transaction:await { timeout = 30 }).customId)
transaction:forget()
client:close()
LUA
apt-get install -q lua-posix
lua5.4 submit.lua die >first || true
lua5.4 submit.lua >second
[ "$(cut -f1 first)" = "$(head -n 1 second | cut -f1)" ]
[ "$(head -n 1 first | cut -f2) $(head -n 1 second | cut -f2)" = 'nil true' ]
[ "$(tail -n 1 second)" = payout-4 ]

mkdir spec
cat >spec/withdraw_spec.lua <<'LUA'
local riskscreen = require "riskscreen"
describe("a withdrawal", function()
  it("is paid to an address without risk, and to no other", function()
    local client, service = riskscreen.sandbox.client { retry = false }
    for name, action in pairs { ["clean-eth"] = "allow", ["type-hack"] = "block", ["fault-500"] = "unknown" } do
      local address = riskscreen.sandbox.scenario(name).address
      assert.equal(action, client:screen({ address = address, network = "eth" }).action)
    end
    assert.equal(3, #service:requests())
  end)
end)
LUA
busted --lua=/usr/bin/lua5.4
SCRIPT
sh tools/bare.sh "$work/script"
