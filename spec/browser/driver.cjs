// Runs the checks of pages in Chromium. A check prints "ok NAME", or "not ok NAME" and the failure on lines that begin
// with a space. spec/support/node.lua reads them.
const path = require("node:path");
const { createRequire } = require("node:module");
const installed = createRequire(path.join(process.env.NPM_ROOT, "package.json"));
const { chromium } = installed("playwright-core");
const axePath = installed.resolve("axe-core/axe.min.js");
const fs = require("node:fs");

const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];

// run(checks): `checks` is a list of [name, function(open)]. They share one page, since a new one takes seconds of
// processor time.
exports.run = async (checks) => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  const page = await browser.newPage();
  page.setDefaultTimeout(30000);
  page.session = await page.context().newCDPSession(page);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("dialog", (dialog) => page.problems.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => page.requests.push(request.url()));
  // Loads an address, also where only its part after the # differs, and keeps what the page complains about and requests.
  const open = async (url, { viewport = { width: 1280, height: 900 }, colorScheme = "light", scripts = true } = {}) => {
    await page.goto("about:blank");
    await page.setViewportSize(viewport);
    await page.emulateMedia({ media: "screen", colorScheme });
    await page.session.send("Emulation.setScriptExecutionDisabled", { value: !scripts });
    page.requests = [];
    await page.goto(url);
    return page;
  };
  let failed = false;
  for (const [name, check] of checks) {
    page.problems = [];
    try {
      await check(open);
      exports.equal(page.problems, [], "the page complains");
      console.log(`ok ${name}`);
    } catch (error) {
      failed = true;
      console.log(`not ok ${name}\n ${String(error.stack).replaceAll("\n", "\n ")}`);
    }
  }
  await browser.close();
  process.exit(failed ? 1 : 0);
};

exports.equal = (actual, expected, what = "") => {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`${what}: expected ${wanted}, got ${got}`);
};

exports.truthy = (value, what) => {
  if (!value) throw new Error(what);
};

// The serious findings of axe about a page. Its script runs beside the page's own policy.
exports.accessibility = async (page) => {
  await page.session.send("Runtime.evaluate", { expression: fs.readFileSync(axePath, "utf8") });
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
};

exports.sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
