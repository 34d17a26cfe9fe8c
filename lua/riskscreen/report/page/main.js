// Draws the page, and draws it again when its address changes.

const filterTitles = { ...Object.fromEntries(dimensions.map(({ key, title }) => [key, title])), address: "Address", q: "Search" };

function drawFacts() {
  document.title = data.title;
  byId("title").textContent = data.title;
  const sources = data.sources.map(([name, number]) => `${shown(name)} (${count(number)})`).join(", ");
  const span = period ? `${dateText(period.first)} to ${dateText(period.last)} UTC` : "";
  byId("facts").replaceChildren(
    ...[`${count(rows.length)} decisions`, span, sources].filter(Boolean).map((text) => make("span", {}, text)));
  byId("made").textContent = `Made by riskscreen ${data.version} on ${dateText(data.time)} UTC. All times are UTC.`;
  if (data.notes.length) {
    byId("notes").hidden = false;
    byId("notes").replaceChildren(make("details", { open: data.notes.length < 4 },
      make("summary", {}, `The input has faults (${count(data.notes.length)})`),
      make("ul", {}, ...data.notes.map((note) => make("li", {}, make("bdi", {}, shown(note)))))));
  }
}

function drawFilters(total) {
  const chips = [];
  const chip = (title, text, changes) => chips.push(make("li", {}, make("a", { class: "chip", href: link(changes),
    "aria-label": `Remove the filter ${title}: ${text}` }, `${title}: `, make("bdi", {}, text),
    make("span", { "aria-hidden": "true" }, " ✕"))));
  for (const [key, title] of Object.entries(filterTitles)) {
    if (state[key] !== undefined) chip(title, shown(state[key]) || dimensionOf[key]?.absent || "none", { [key]: undefined });
  }
  if (state.from !== undefined || state.to !== undefined) {
    const ends = [state.from, state.to].map((end) => (end === undefined ? "" : bucketText(Number(end))));
    chip("Time", ends.join(" to "), { from: undefined, to: undefined });
  }
  if (chips.length) chips.push(make("li", {}, make("a", { class: "clear", href: "#all", "data-key": "clear" }, "Remove all filters")));
  byId("chips").replaceChildren(...chips);
  byId("count").textContent = chips.length
    ? `${count(total)} of ${count(rows.length)} decisions` : `All ${count(rows.length)} decisions`;
}

// The lists above the table: those of the most used filters, and on a phone the order.
const selects = [];
function makeSelects() {
  const add = (key, title, options, name = "") => {
    const select = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
    select.addEventListener("change", () => go({ [key]: select.value === "\0" ? undefined : select.value }));
    byId("tools").append(make("label", { class: name }, title, " ", select));
    selects.push({ key, select });
  };
  add("action", "Verdict", [["\0", "All"], ...ACTIONS.map((action) => [action, NAMES[action]])]);
  for (const key of ["level", "type", "network", "case", "analyst"]) {
    const dimension = dimensionOf[key];
    if (!used.includes(dimension)) continue;
    const values = new Set();
    for (const row of rows) {
      if (dimension.isList) row[dimension.column].forEach((value) => values.add(value));
      else if (row[dimension.column] !== 0) values.add(row[dimension.column]);
    }
    const list = [...values].sort((a, b) => (key === "level" ? levelRank(a) - levelRank(b) : rankOf(a) - rankOf(b)));
    add(key, dimension.title, [["\0", "All"], ...list.slice(0, 200).map((value) => [textOf(value), shown(textOf(value))])]);
  }
  add("sort", "Order", columns.flatMap(({ key, title }) => [[key, title], [`-${key}`, `${title}, reversed`]]), "narrow");
}

let matched = [];

function render() {
  const focused = document.activeElement?.dataset?.key, before = state.row;
  state = readState();
  const result = compute(state);
  matched = sorted(result.matched);
  drawTiles(result.counts);
  drawFilters(matched.length);
  drawCharts(result.counts);
  drawTable(matched, false);
  for (const { key, select } of selects) select.value = state[key] ?? (key === "sort" ? "action" : "\0");
  if (document.activeElement !== byId("search")) byId("search").value = state.q ?? "";
  drawDetails();
  // What was drawn again keeps the focus; a closed dialog gives it back to its row.
  const key = state.row === undefined && before !== undefined ? `row ${before}` : focused;
  if (key && state.row === undefined) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

let typing;
byId("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const q = byId("search").value.trim() || undefined;
    history.replaceState(null, "", link({ q }));
    render();
  }, 120);
});
byId("tools").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["skip", "to-rows"]) {
  byId(id).addEventListener("click", (event) => {
    event.preventDefault();
    byId("rows-title").focus();
    byId("rows-title").scrollIntoView();
  });
}
byId("download").addEventListener("click", () => download("decisions.csv", csvOf(matched)));
byId("close").addEventListener("click", () => byId("details").close());
byId("details").addEventListener("close", () => {
  if (state.row !== undefined) location.hash = hashOf({ ...state, row: undefined });
});
window.addEventListener("hashchange", render);
window.addEventListener("beforeprint", () => drawTable(matched, true));
window.addEventListener("afterprint", () => drawTable(matched, false));
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) {
    width = window.innerWidth;
    render();
  }
});

drawFacts();
makeSelects();
render();
