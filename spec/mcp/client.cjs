// Speaks to `riskscreen mcp` with the official client. A check prints "ok NAME", or "not ok NAME" and the failure.
// Arguments: the program, its arguments as JSON, its environment as JSON, and an address with risks.
const path = require("node:path");
const { createRequire } = require("node:module");
const installed = createRequire(path.join(process.env.NPM_ROOT, "package.json"));
const { Client } = installed("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = installed("@modelcontextprotocol/sdk/client/stdio.js");
const assert = require("node:assert");

const [program, args, environment, address] = process.argv.slice(2);
const transport = new StdioClientTransport({
  command: program,
  args: JSON.parse(args),
  env: { PATH: process.env.PATH, LUA_PATH: process.env.LUA_PATH, LUA_CPATH: process.env.LUA_CPATH, ...JSON.parse(environment) },
  stderr: "ignore",
});
const client = new Client({ name: "spec", version: "1" });

const call = async (name, parameters) => {
  const answer = await client.callTool({ name, arguments: parameters });
  const text = answer.content[0].text;
  const start = text.indexOf("{");
  return { isError: answer.isError, note: text.slice(0, start), ...JSON.parse(start < 0 ? "{}" : text.slice(start)) };
};

const checks = {
  async connects() {
    await client.connect(transport);
    assert.strictEqual(client.getServerVersion().name, "riskscreen");
    await client.ping();
  },
  async "lists read-only tools"() {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    assert.deepStrictEqual(names, ["screen", "address_check", "risk", "counterparties", "journal_show"]);
    for (const tool of tools) {
      assert.strictEqual(tool.annotations.readOnlyHint, true);
      assert.strictEqual(tool.inputSchema.additionalProperties, false);
    }
  },
  async screens() {
    const answer = await call("screen", { address: [address], network: "eth" });
    assert.match(answer.note, /untrusted/);
    assert.strictEqual(answer.isError, false);
    assert.deepStrictEqual([answer.status, answer.meaning], [2, "the worst decision is block"]);
    assert.strictEqual(answer.results[0].action, "block");
  },
  async "looks up risks and counterparties"() {
    const risk = await call("risk", { address: [address], network: "eth" });
    assert.strictEqual(risk.results[0].risks[0].riskType, "hack");
    const others = await call("counterparties", { address: [address], network: "eth" });
    assert.strictEqual(others.status, 0);
  },
  async "explains an address"() {
    const answer = await call("address_check", { address: [address + "0"], network: "eth" });
    assert.strictEqual(answer.results[0].valid, false);
    assert.match(answer.results[0].problem, /eth/);
  },
  async "shows the journal"() {
    const answer = await call("journal_show", { action: "block" });
    assert.strictEqual(answer.results.length, 1);
    assert.strictEqual(answer.results[0].input, address);
  },
  async "refuses unknown tools and arguments"() {
    await assert.rejects(client.callTool({ name: "scren", arguments: {} }), /unknown tool 'scren'; did you mean 'screen'\?/);
    const answer = await client.callTool({ name: "screen", arguments: { addresses: [address] } });
    assert.strictEqual(answer.isError, true);
    assert.match(answer.content[0].text, /did you mean 'address'\?/);
  },
  async "ends with its input"() {
    const { pid } = transport;
    await client.close();
    assert.throws(() => process.kill(pid, 0));
  },
};

(async () => {
  let failed = false;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok ${name}`);
    } catch (error) {
      failed = true;
      console.log(`not ok ${name}\n ${String(error.stack).replaceAll("\n", "\n ")}`);
    }
  }
  process.exit(failed ? 1 : 0);
})();
