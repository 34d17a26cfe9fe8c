// Runs the checks of pages in Chromium. A check prints "ok NAME", or "not ok NAME" and the failure on lines that begin
// with a space. spec/support/browser.lua reads them.
const path = require("node:path");
const { createRequire } = require("node:module");
const installed = createRequire(path.join(process.env.BROWSER_ROOT, "package.json"));
const { chromium } = installed("playwright-core");
const axePath = installed.resolve("axe-core/axe.min.js");
const fs = require("node:fs");

const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];

// run(checks): `checks` is a list of [name, function(open, page…)].
exports.run = async (checks) => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
  let failed = false;
  for (const [name, check] of checks) {
    const pages = [];
    // Opens a page and keeps what it complains about and requests.
    const open = async (url, options = {}) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(30000);
      page.problems = [];
      page.requests = [];
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.problems.push(message.text()));
      page.on("pageerror", (error) => page.problems.push(error.message));
      page.on("dialog", (dialog) => page.problems.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
      page.on("request", (request) => page.requests.push(request.url()));
      await page.goto(url);
      pages.push(page);
      return page;
    };
    try {
      await check(open);
      for (const page of pages) exports.equal(page.problems, [], "the page complains");
      console.log(`ok ${name}`);
    } catch (error) {
      failed = true;
      console.log(`not ok ${name}\n ${String(error.stack).replaceAll("\n", "\n ")}`);
    }
    for (const page of pages) await page.context().close();
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
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: fs.readFileSync(axePath, "utf8") });
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
};

exports.sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
