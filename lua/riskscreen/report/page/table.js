// The table of the rows that match: one page of it at a time, so that its length does not matter.

const PAGE = 100;
const MAX_PRINTED = 1000;

const compareTexts = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const verdict = (action) => make("span", { class: `verdict ${action}` }, icon(action), NAMES[action]);
const filterLink = (key, value, name) =>
  value === 0 ? "" : make("a", { href: link({ [key]: textOf(value) }), ...name }, shown(textOf(value)));

// The columns: by which value they are sorted, and what stands in a row's cell.
const columns = [
  { key: "action", title: "Verdict", of: (row) => actionIndex.get(row[ACTION]), cell: (row) => [verdict(textOf(row[ACTION]))] },
  { key: "address", title: "Address", of: (row) => row[ADDRESS], compare: compareTexts, cell: (row, index) => [
    make("a", { href: hashOf({ ...state, row: index }), "data-key": `row ${index}`, dir: "ltr" }, shown(row[ADDRESS]) || "(no address)")] },
  { key: "network", title: "Network", of: (row) => rankOf(row[NETWORK]), cell: (row) => [filterLink("network", row[NETWORK], { dir: "auto" })] },
  { key: "level", title: "Risk", of: (row) => levelRank(row[LEVEL]), cell: (row) => [filterLink("level", row[LEVEL], { class: "risk" }),
    ...row[TYPES].flatMap((type) => [" ", filterLink("type", type, { class: "risk type" })])] },
  { key: "entity", title: "Entity", of: (row) => (row[ENTITY] === 0 ? Infinity : rankOf(row[ENTITY])),
    cell: (row) => [filterLink("entity", row[ENTITY], { dir: "auto" })] },
  { key: "time", title: "Time (UTC)", of: (row) => row[TIME] ?? Infinity, cell: (row) => [row[TIME] === null ? "" : dateText(row[TIME])] },
  { key: "reasons", title: "Reasons", of: (row) => rankOf(row[REASONS]), cell: (row) => [make("bdi", {}, shown(textOf(row[REASONS])))] },
];

// "address" or "-address": the column, and whether the order is reversed.
function order() {
  const text = state.sort ?? "action";
  const isReversed = text.startsWith("-");
  const column = columns.find(({ key }) => key === text.replace("-", "")) ?? columns[0];
  return { column, isReversed };
}

function sorted(indexes) {
  const { column, isReversed } = order();
  const keys = indexes.map((index) => column.of(rows[index]));
  const places = indexes.map((_, place) => place);
  const compare = column.compare ?? ((a, b) => (a === b ? 0 : a < b ? -1 : 1));
  const sign = isReversed ? -1 : 1;
  places.sort((a, b) => sign * compare(keys[a], keys[b]) || a - b);
  return places.map((place) => indexes[place]);
}

function drawColumns() {
  const { column, isReversed } = order();
  byId("columns").replaceChildren(
    ...columns.map(({ key, title }) => {
      const isSorted = column.key === key;
      const button = make("button", { type: "button", "data-key": `sort ${key}` }, title,
        make("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (isReversed ? " ▼" : " ▲") : ""));
      button.addEventListener("click", () => go({ sort: isSorted && !isReversed ? `-${key}` : key }));
      const direction = isSorted ? (isReversed ? "descending" : "ascending") : "none";
      return make("th", { role: "columnheader", scope: "col", "aria-sort": direction, class: key }, button);
    }),
  );
}

function drawRow(index, position) {
  return make("tr", { role: "row", "aria-rowindex": position + 2 }, ...columns.map(({ key, title, cell }) =>
    make("td", { role: "cell", class: key, "data-label": title }, ...cell(rows[index], index))));
}

function drawTable(indexes, isPrinted) {
  const pages = Math.max(1, Math.ceil(indexes.length / PAGE));
  const page = Math.min(pages, Math.max(1, Math.floor(Number(state.page)) || 1));
  const from = isPrinted ? 0 : (page - 1) * PAGE;
  const part = indexes.slice(from, isPrinted ? MAX_PRINTED : from + PAGE);
  drawColumns();
  byId("table").setAttribute("aria-rowcount", indexes.length + 1);
  byId("table").hidden = indexes.length === 0;
  byId("empty").hidden = indexes.length > 0;
  byId("body").replaceChildren(...part.map((index, place) => drawRow(index, from + place)));
  byId("printed").textContent =
    part.length < indexes.length ? `The first ${count(part.length)} of ${count(indexes.length)} decisions.` : "";
  drawPager(page, pages, from, part.length, indexes.length);
}

function drawPager(page, pages, from, length, total) {
  const step = (title, target, key) =>
    target >= 1 && target <= pages && target !== page
      ? make("a", { href: link({ page: target }), "data-key": `page ${key}` }, title)
      : make("span", { class: "off" }, title);
  byId("pager").replaceChildren(
    ...(pages < 2 ? [] : [
      step("First", 1, "first"),
      step("Previous", page - 1, "previous"),
      make("span", {}, `${count(from + 1)}–${count(from + length)} of ${count(total)}`),
      step("Next", page + 1, "next"),
      step("Last", pages, "last"),
    ]),
  );
}
