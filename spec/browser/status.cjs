// status.cjs PATH: checks the status page of a gate.
const { pathToFileURL } = require("node:url");
const { run, equal, accessibility, sideways } = require("./driver.cjs");

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
      // A page that loads itself again is what an operator wants of a status.
      equal((await accessibility(page)).filter((finding) => !finding.startsWith("meta-refresh")), [], colorScheme);
    }
  }],
]);
