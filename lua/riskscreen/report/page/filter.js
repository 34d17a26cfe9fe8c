// The state of the page is its address after the "#": filters, order, page, and the row that is open. So every number
// can be a link, and the browser's Back undoes a filter.

// The order of the charts.
const dimensions = ["action", "level", "type", "network", "entity", "error", "source", "case", "analyst"].map((name) =>
  fields.find(({ key }) => key === name));
const dimensionOf = Object.fromEntries(dimensions.map((dimension) => [dimension.key, dimension]));

const isKey = new Set([...Object.keys(dimensionOf), "address", "from", "to", "q", "sort", "page", "row"]);

function readState() {
  const state = {};
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (isKey.has(key)) state[key] = value;
  }
  return state;
}

function hashOf(state) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== undefined) parameters.set(key, value);
  }
  return `#${parameters.toString() || "all"}`;
}

// The address of the page with some changes. Another filter begins at the first page.
const link = (changes) => hashOf({ ...state, page: undefined, row: undefined, ...changes });

function go(changes) {
  location.hash = link(changes);
}

let state = {};

const UNITS = [60, 300, 900, 3600, 10800, 21600, 43200, 86400, 604800, 2592000, 7776000, 31536000];
const MAX_BUCKETS = 60;

// The columns of the chart over time: `from` the first second, `step` seconds each.
const period = (() => {
  let first = Infinity, last = -Infinity;
  for (const row of rows) {
    if (row[TIME] !== null) {
      first = Math.min(first, row[TIME]);
      last = Math.max(last, row[TIME]);
    }
  }
  if (first > last) return null;
  let step = UNITS.find((unit) => (last - first) / unit < MAX_BUCKETS - 1);
  step = step ?? Math.ceil((last - first) / MAX_BUCKETS);
  const from = Math.floor(first / step) * step;
  return { first, last, from, step, length: Math.floor((last - from) / step) + 1 };
})();

// The lower-case text of each row that a search looks at, made at the first search.
let haystacks;
function haystackOf(index) {
  const searched = fields.filter(({ column }) => column !== TIME);
  haystacks ??= rows.map((row) => {
    const parts = searched.map((field) => textIn(row, field, "\n"));
    for (let at = 1; at < row[OTHERS].length; at += 2) parts.push(row[OTHERS][at]);
    return parts.join("\n").toLowerCase();
  });
  return haystacks[index];
}

// The tests of the filters in use: those that a chart has, and the others.
function testsOf(filters) {
  const ofCharts = [], others = [];
  for (const dimension of dimensions) {
    if (filters[dimension.key] !== undefined) {
      const wanted = valueOf(filters[dimension.key]), column = dimension.column;
      const test = dimension.isList
        ? (row) => (wanted === 0 ? row[column].length === 0 : row[column].includes(wanted))
        : (row) => row[column] === wanted;
      ofCharts.push({ key: dimension.key, test });
    }
  }
  if (filters.from !== undefined || filters.to !== undefined) {
    const from = Number(filters.from ?? -Infinity), to = Number(filters.to ?? Infinity);
    ofCharts.push({ key: "time", test: (row) => row[TIME] !== null && row[TIME] >= from && row[TIME] < to });
  }
  if (filters.address !== undefined) others.push((row) => row[ADDRESS] === filters.address);
  const words = (filters.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length) others.push((_, index) => words.every((word) => haystackOf(index).includes(word)));
  return { ofCharts, others };
}

// The rows that match, and for each chart the counts of its values by action. A chart counts the rows that match all
// filters but its own, so that the number of a bar is the number of rows behind its link.
function compute(filters) {
  const { ofCharts, others } = testsOf(filters);
  const counts = Object.fromEntries(dimensions.map(({ key }) => [key, new Map()]));
  counts.time = new Map();
  const add = (map, value, action) => {
    let list = map.get(value);
    if (!list) map.set(value, (list = [0, 0, 0, 0]));
    list[action]++;
  };
  const addRow = (row, key) => {
    const action = actionIndex.get(row[ACTION]);
    if (key === "time") {
      if (row[TIME] !== null) add(counts.time, Math.floor((row[TIME] - period.from) / period.step), action);
    } else {
      const { column, isList } = dimensionOf[key];
      if (!isList) add(counts[key], row[column], action);
      else if (row[column].length === 0) add(counts[key], 0, action);
      else for (const value of row[column]) add(counts[key], value, action);
    }
  };
  const keys = Object.keys(counts);
  const matched = [];
  rows.forEach((row, index) => {
    let missed = null;
    for (const { key, test } of ofCharts) {
      if (!test(row)) {
        if (missed) return;
        missed = key;
      }
    }
    for (const test of others) if (!test(row, index)) return;
    if (missed) addRow(row, missed);
    else {
      matched.push(index);
      for (const key of keys) addRow(row, key);
    }
  });
  return { matched, counts };
}
