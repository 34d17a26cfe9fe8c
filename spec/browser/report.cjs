// report.cjs FOLDER: checks the pages that spec/integration/report_spec.lua has written to the folder.
const { pathToFileURL } = require("node:url");
const { run, equal, truthy, accessibility, sideways } = require("./driver.cjs");

const folder = process.argv[2];
const url = (name, hash = "") => pathToFileURL(`${folder}/${name}.html`).href + hash;
const WIDTHS = [1440, 820, 375];

const matches = (page) => page.$eval("#count", (element) => {
  const [, number] = element.textContent.match(/([\d,]+)/);
  return Number(number.replaceAll(",", ""));
});
const cells = (page, name) => page.$$eval(`#body td.${name}`, (list) => list.map((cell) => cell.textContent));
const settled = (page, number) => page.waitForFunction((wanted) =>
  document.getElementById("count").textContent.replaceAll(",", "").includes(String(wanted)), number);

// The number that a link shows and its target. A link of a filter that is set removes the filter.
const numbered = (page) => page.evaluate(() => {
  const list = [];
  for (const link of document.querySelectorAll("#tiles a:not([aria-current]), .bars a:not([aria-current])")) {
    const number = link.querySelector("strong, .number").textContent.replaceAll(",", "");
    list.push([link.dataset.key, link.getAttribute("href"), Number(number)]);
  }
  for (const link of document.querySelectorAll("svg.time a:not(.active)")) {
    const numbers = link.getAttribute("aria-label").split(": ")[1].match(/\d[\d,]*/g);
    list.push([link.dataset.key, link.getAttribute("href"), numbers.reduce((sum, text) => sum + Number(text.replaceAll(",", "")), 0)]);
  }
  return list;
});

run([
  ["loads nothing and has no script but its own", async (open) => {
    const page = await open(url("small"));
    equal(page.requests.filter((address) => !address.startsWith("file:")), []);
    equal(page.requests.length, 1);
    const blocked = await page.evaluate(() => new Promise((resolve) => {
      document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "window.intruder = true";
      document.body.append(script);
    }));
    equal(blocked, "script-src-elem");
    equal(await page.evaluate(() => window.intruder === undefined), true);
    page.problems = [];
  }],

  ["shows the verdicts of the input", async (open) => {
    const page = await open(url("small"));
    const tiles = await page.$$eval("#tiles a", (list) => list.map((tile) =>
      [tile.querySelector(".tile-name").textContent, tile.querySelector("strong").textContent]));
    const expected = JSON.parse(process.argv[3]);
    equal(tiles, ["Block", "Review", "Unknown", "Allow"].map((name) => [name, String(expected[name.toLowerCase()])]));
  }],

  ["has numbers that lead to as many rows", async (open) => {
    const page = await open(url("small"));
    for (const start of ["#all", "#action=block", "#network=eth&type=hack", "#q=tornado"]) {
      await page.evaluate((hash) => (location.hash = hash), start);
      await page.waitForFunction((hash) => location.hash === hash, start);
      const links = await numbered(page);
      truthy(links.length > 10, `${links.length} links`);
      const found = await page.evaluate(async (targets) => {
        const counts = [];
        document.documentElement.hidden = true; // the counts are read as texts, so nothing need be drawn
        for (const target of targets) {
          if (location.hash !== target) {
            await new Promise((resolve) => {
              window.addEventListener("hashchange", () => setTimeout(resolve), { once: true });
              location.hash = target;
            });
          }
          counts.push(Number(document.getElementById("count").textContent.match(/[\d,]+/)[0].replaceAll(",", "")));
        }
        document.documentElement.hidden = false;
        return counts;
      }, links.map(([, target]) => target));
      links.forEach(([key, , number], index) => equal(found[index], number, `${start}: ${key}`));
    }
  }],

  ["filters by clicks, and goes back", async (open) => {
    const page = await open(url("small"));
    const all = await matches(page);
    await page.click("#tiles a.block");
    await page.waitForFunction(() => location.hash === "#action=block");
    const blocked = await matches(page);
    truthy(blocked > 0 && blocked < all, `${blocked} of ${all}`);
    equal([...new Set(await cells(page, "action"))], ["Block"]);
    await page.click('.bars a[data-key="network eth"]');
    await page.waitForSelector('.bars a[data-key="network eth"][aria-current]');
    equal([...new Set(await cells(page, "network"))], ["eth"]);
    equal(await page.evaluate(() => document.activeElement.dataset.key), "network eth", "the focus");
    await page.click('.chip:has-text("Verdict")');
    await page.waitForFunction(() => location.hash === "#network=eth");
    await page.goBack();
    await page.waitForFunction(() => location.hash.includes("action=block"));
    await page.click(".clear");
    await settled(page, all);
    await page.selectOption("#tools select >> nth=0", "review");
    await page.waitForFunction(() => location.hash.includes("action=review"));
    equal([...new Set(await cells(page, "action"))], ["Review"]);
  }],

  ["sorts by clicks", async (open) => {
    const page = await open(url("small"));
    const heading = page.locator("th.address button");
    await heading.click();
    await page.waitForSelector('th.address[aria-sort="ascending"]');
    const rising = await cells(page, "address");
    equal(rising, [...rising].sort());
    await heading.click();
    await page.waitForSelector('th.address[aria-sort="descending"]');
    const falling = await cells(page, "address");
    equal(falling, [...falling].sort().reverse());
    truthy(falling[0] > rising[0], "the other end");
    await page.locator("th.time button").click();
    await page.waitForSelector('th.time[aria-sort="ascending"]');
    const times = (await cells(page, "time")).filter(Boolean);
    equal(times, [...times].sort());
    await page.locator("th.level button").click();
    await page.waitForSelector('th.level[aria-sort="ascending"]');
    truthy((await cells(page, "level"))[0].startsWith("high"), "the worst level first");
  }],

  ["searches every column, as one types", async (open) => {
    const page = await open(url("small"));
    await page.fill("#search", "CUSTOMER-17 ");
    await settled(page, "1 of");
    await page.fill("#search", "no such row");
    await page.waitForSelector("#empty:visible");
    equal(await page.isVisible("#table"), false);
  }],

  ["opens a row by keyboard and gives the focus back", async (open) => {
    const page = await open(url("small"));
    await page.focus("#body tr:nth-child(2) td.address a");
    const address = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#details[open]");
    truthy((await page.textContent("#details-title")).includes(address), "the address");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#details:not([open])", { state: "attached" });
    await page.waitForFunction((text) => document.activeElement.textContent === text, address);
    equal(await page.evaluate(() => location.hash), "#all");
  }],

  ["lets the keyboard skip to the decisions", async (open) => {
    const page = await open(url("small"));
    await page.keyboard.press("Tab");
    equal(await page.evaluate(() => document.activeElement.id), "skip");
    await page.keyboard.press("Enter");
    equal(await page.evaluate(() => document.activeElement.id), "rows-title");
    await page.keyboard.press("Tab");
    equal(await page.evaluate(() => document.activeElement.id), "search");
  }],

  ["draws the counterparties of an address", async (open) => {
    const page = await open(url("counterparties", "#row=0"));
    await page.waitForSelector("#details[open] svg.picture");
    equal(await page.$$eval("svg.picture .flow", (list) => list.length), 4);
    equal(await page.$$eval("#details table.plain tbody tr", (list) => list.length), 4);
    const [sender, middle, receiver] = await page.evaluate(() => {
      const x = (text) => [...document.querySelectorAll("svg.picture text")].find((label) => label.textContent === text).getBoundingClientRect();
      const circle = document.querySelector("svg.picture .fill-accent").getBoundingClientRect();
      return [x("Ronin Exploit").right, circle.left, x("Tornado Cash").left];
    });
    truthy(sender < middle && middle < receiver, "senders on the left, receivers on the right");
    equal(await sideways(page), 0);
  }],

  ["filters by case and analyst, and shows them", async (open) => {
    const page = await open(url("cases"));
    await settled(page, 6);
    await page.click('.bars a[data-key="case C-1"]');
    await settled(page, "3 of");
    await page.locator("#tools label", { hasText: "Analyst" }).locator("select").selectOption("alice");
    await settled(page, "2 of");
    equal((await cells(page, "address")).sort(), ["0x1", "0x3"]);
    await page.click("#body td.address a");
    await page.waitForSelector("#details[open]");
    const facts = await page.textContent("#details-content");
    for (const text of ["Case", "C-1", "Analyst", "alice", "note", "=1+1, say"]) truthy(facts.includes(text), text);
    const searched = await open(url("cases", "#q=c-0+bob"));
    await settled(searched, "2 of");
  }],

  ["downloads the decisions that match as CSV", async (open) => {
    const page = await open(url("cases", "#analyst=bob&sort=-address"));
    await settled(page, "3 of");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
    equal(download.suggestedFilename(), "decisions.csv");
    const text = require("node:fs").readFileSync(await download.path(), "utf8");
    const start = (address) => `2026-11-18T11:06:40Z,${address},eth,allow,`;
    equal(text.split("\r\n"), [
      "time,address,network,action,reasons,risk_levels,risk_types,entity,category,source,error,case,analyst,note,verdict_of",
      `${start("0x6")}"one; the ""other""",,,,,,,C-0,bob,"'=1+1, say"," spaced"`,
      `${start("0x5")},,,,,,,C-1,bob,"'=1+1, say",`,
      `${start("0x4")},,,,,,,C-0,bob,"'=1+1, say",`,
      "",
    ]);
    require("node:fs").copyFileSync(await download.path(), `${folder}/downloaded.csv`);
  }],

  ["shows hostile texts as texts", async (open) => {
    const page = await open(url("hostile"));
    const texts = JSON.parse(process.argv[4]);
    equal(await page.title(), "Report </title><script>alert(1)</script>");
    equal(await page.$$eval("script", (list) => list.length), 2);
    equal(await page.$$eval("img, iframe, i, b", (list) => list.length), 0);
    equal((await cells(page, "address")).sort(), texts.map(([, shown]) => shown).sort());
    for (const [raw, shown] of texts) {
      const filtered = await open(url("hostile", `#${new URLSearchParams({ entity: raw })}`));
      equal(await cells(filtered, "address"), [shown], "the filter by a hostile entity");
      await filtered.click("#body td.address a");
      await filtered.waitForSelector("#details[open]");
      truthy((await filtered.textContent("#details-content")).includes(shown), `the details of ${shown}`);
      equal(filtered.problems, []);
    }
  }],

  ["stays small and usable with 50,000 rows", async (open) => {
    const page = await open(url("large"));
    await settled(page, 50000);
    const size = () => page.evaluate(() => document.querySelectorAll("*").length);
    const before = await size();
    truthy(before < 5000, `${before} elements`);
    equal(await page.$$eval("#body tr", (list) => list.length), 100);
    equal(await page.getAttribute("#table", "aria-rowcount"), "50001");
    await page.click("th.address button");
    await page.waitForSelector('th.address[aria-sort="ascending"]');
    await page.click('.pager a[data-key="page last"]');
    await page.waitForFunction(() => document.getElementById("pager").textContent.includes("50,000 of"));
    const last = await cells(page, "address");
    equal(last, [...last].sort());
    await page.click("#tiles a.review");
    await page.waitForFunction(() => location.hash.includes("action=review") && !location.hash.includes("page"));
    await page.fill("#search", "tornado eth");
    await page.waitForFunction(() => location.hash.includes("tornado"));
    truthy((await matches(page)) > 0, "matches");
    truthy((await size()) < 5000, "elements after a search");
  }],

  ["fits three widths in light and dark", async (open) => {
    const backgrounds = new Set();
    for (const width of WIDTHS) {
      for (const colorScheme of ["light", "dark"]) {
        const page = await open(url("small"), { viewport: { width, height: 900 }, colorScheme });
        equal(await sideways(page), 0, `${width} ${colorScheme}`);
        backgrounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
      }
    }
    equal(backgrounds.size, 2, "the backgrounds");
  }],

  ["has no serious finding of axe", async (open) => {
    for (const [width, colorScheme] of [[1280, "light"], [375, "dark"]]) {
      for (const [name, hash] of [["few", "#all"], ["small", "#action=block&q=tornado"], ["counterparties", "#row=0"], ["small", "#q=nothing-has-this"]]) {
        const page = await open(url(name, hash), { viewport: { width, height: 900 }, colorScheme });
        equal(await accessibility(page), [], `${name} ${hash} ${width} ${colorScheme}`);
      }
    }
  }],

  ["prints the charts and the rows that match", async (open) => {
    const page = await open(url("large", "#action=block"));
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    const total = await matches(page);
    equal(await page.$$eval("#body tr", (list) => list.length), Math.min(total, 1000));
    equal(await page.isVisible("#tools"), false);
    equal(await page.isVisible("#printed"), total > 1000);
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    equal(await page.$$eval("#body tr", (list) => list.length), 100);
  }],

  ["says so where there is no JavaScript", async (open) => {
    const page = await open(url("small"), { scripts: false });
    truthy((await page.locator("noscript").innerText()).includes("The table needs JavaScript."), "the note");
  }],
]);
