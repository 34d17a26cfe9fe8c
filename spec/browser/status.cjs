// status.cjs PATH: checks the status page of a gate.
const { pathToFileURL } = require("node:url");
const { run, equal, truthy, accessibility, sideways } = require("./driver.cjs");

const url = pathToFileURL(process.argv[2]).href;

run([
  ["does not scroll sideways on a phone", async (open) => {
    for (const width of [1280, 375, 320]) {
      equal(await sideways(await open(url, { viewport: { width, height: 800 } })), 0, String(width));
    }
  }],
  ["has no serious finding of axe", async (open) => {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(url, { viewport: { width: 375, height: 800 }, colorScheme });
      equal(await accessibility(page), [], colorScheme);
    }
  }],
  ["draws the minutes with figures in words", async (open) => {
    for (const width of [1280, 320]) {
      const page = await open(url, { viewport: { width, height: 800 } });
      const chart = page.getByRole("img", { name: /^Allow: \d+ in all, at most 60 in a minute$/ });
      const box = await chart.boundingBox();
      truthy(box && box.width > 100 && box.height > 20, `the chart is ${JSON.stringify(box)} at ${width}`);
      truthy(await page.getByText(/Allow: \d+ in all, at most 60 in a minute/).isVisible(), "the figures are hidden");
      // The bars are in the picture, and the highest one is as high as the picture.
      const bars = await chart.locator("path").last().evaluate((path) => path.getBBox().height);
      equal(Math.round(bars), 39, "the height of the bars");
    }
  }],
]);
