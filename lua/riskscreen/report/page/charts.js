// The tiles of the verdicts and the charts. Each is made anew from the counts.

const sum = (list) => list.reduce((total, number) => total + number, 0);

const isActive = (key, text) => state[key] === text;
// A link that sets a filter, or removes it where it is set.
const toggle = (key, text) => link({ [key]: isActive(key, text) ? undefined : text });

function drawTiles(counts) {
  const total = sum([...counts.action.values()].map(sum));
  byId("tiles").replaceChildren(
    ...ACTIONS.map((action, index) => {
      const number = (counts.action.get(valueOf(action)) ?? [0, 0, 0, 0])[index];
      const share = total ? (100 * number) / total : 0;
      const shareText = `${share && share < 0.1 ? "< 0.1" : share.toFixed(1)} %`;
      return make(
        "li",
        {},
        make(
          "a",
          { class: `tile ${action}`, href: toggle("action", action), "data-key": `tile ${action}`,
            "aria-current": isActive("action", action) && "true" },
          make("span", { class: "tile-name" }, icon(action), NAMES[action]),
          make("strong", {}, count(number)),
          make("span", { class: "share" }, shareText),
        ),
      );
    }),
  );
}

function card(key, title, ...children) {
  const id = `chart-${key}`;
  return make("section", { class: `card ${key}`, "aria-labelledby": id }, make("h2", { id }, title), ...children);
}

const NICE = [1, 2, 5, 10, 20, 50];
function niceTop(most) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(most, 1))));
  return (NICE.find((step) => step * power >= most) ?? 10) * power;
}

// "Block 3, Allow 12": the actions that occur.
const describe = (list) =>
  ACTIONS.map((action, index) => (list[index] ? `${NAMES[action]} ${count(list[index])}` : "")).filter(Boolean).join(", ");

function bucketText(from) {
  return dateText(from, period.step < 86400);
}

function legend() {
  return make(
    "ul",
    { class: "legend", "aria-hidden": "true" },
    ...ACTIONS.map((action) =>
      make("li", {}, makeSvg("svg", { viewBox: "0 0 12 12", class: "swatch" }, block(action, 0, 0, 12, 12)), NAMES[action])),
  );
}

function timeChart(counts) {
  const wide = byId("charts").clientWidth || 720;
  const width = Math.max(280, Math.min(wide - 34, 1400)), height = 190, left = 46, bottom = 24, top = 8;
  const column = (width - left) / period.length;
  const most = niceTop(Math.max(1, ...[...counts.values()].map(sum)));
  const y = (number) => top + (height - top - bottom) * (1 - number / most);
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, class: "time", role: "group",
    "aria-label": "Decisions over time; each column is a link to its decisions" });
  for (const part of most % 2 === 0 ? [0, 0.5, 1] : [0, 1]) {
    const line = y(most * part);
    svg.append(makeSvg("line", { class: "grid", x1: left, x2: width, y1: line, y2: line }));
    const label = makeSvg("text", { class: "axis", x: left - 6, y: line + 4, "text-anchor": "end" });
    label.textContent = count(most * part);
    svg.append(label);
  }
  const every = Math.max(1, Math.ceil(110 / column));
  for (let index = 0; index < period.length; index++) {
    const from = period.from + index * period.step, x = left + index * column;
    if (index % every === 0 && (x + 100 <= width || index === 0)) {
      const label = makeSvg("text", { class: "axis", x, y: height - 6 });
      label.textContent = bucketText(from);
      svg.append(label);
    }
    const list = counts.get(index);
    if (!list) continue;
    const active = Number(state.from) === from;
    const anchor = makeSvg("a", { href: link(active ? { from: undefined, to: undefined } : { from, to: from + period.step }),
      "data-key": `time ${from}`, "aria-label": `${bucketText(from)}: ${describe(list)}`, class: active ? "active" : "" });
    const title = makeSvg("title");
    title.textContent = `${bucketText(from)}: ${describe(list)}`;
    anchor.append(title, makeSvg("rect", { class: "hit", x, y: top, width: column, height: height - top - bottom }));
    let base = 0;
    ACTIONS.forEach((action, place) => {
      if (list[place]) {
        const above = y(base + list[place]);
        anchor.append(block(action, x + column * 0.1, above, column * 0.8, y(base) - above));
        base += list[place];
      }
    });
    svg.append(anchor);
  }
  return card("over-time", "Decisions over time", legend(), svg);
}

const expanded = new Set();
const SHORT = 8;

// Bars of the values of a dimension, the longest first; levels keep their own order.
function barChart(dimension, counts) {
  const { key, title, absent } = dimension;
  const entries = [...counts].map(([value, list]) => ({ value, list, total: sum(list) }))
    .filter(({ value }) => value !== 0 || absent);
  entries.sort((a, b) => (key === "level" && levelRank(a.value) - levelRank(b.value)) ||
    (key !== "level" && (a.value === 0) - (b.value === 0)) || b.total - a.total || rankOf(a.value) - rankOf(b.value));
  // The rows without a value would make the other bars short, so they have a number alone.
  const most = Math.max(1, ...entries.map(({ value, total }) => (value === 0 ? 0 : total)));
  const visible = expanded.has(key) ? entries.slice(0, 500) : entries.slice(0, SHORT);
  // A filter that is set stays in view.
  for (const entry of entries) {
    if (isActive(key, textOf(entry.value)) && !visible.includes(entry)) visible.push(entry);
  }
  const items = visible.map(({ value, list, total }) => {
    const text = textOf(value);
    const svg = makeSvg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    let x = 0;
    ACTIONS.forEach((action, place) => {
      const width = value === 0 ? 0 : (100 * list[place]) / most;
      if (width) svg.append(makeSvg("rect", { class: `paint-${action}`, x, y: 0, width, height: 10 }));
      x += width;
    });
    return make("li", {}, make("a", { href: toggle(key, text), "data-key": `${key} ${text}`,
      "aria-current": isActive(key, text) && "true", title: describe(list) },
      make("bdi", { class: value === 0 ? "label none" : "label" }, shown(text) || absent), svg,
      make("span", { class: "number" }, count(total))));
  });
  const parts = [items.length ? make("ul", { class: "bars" }, ...items) : make("p", { class: "none" }, "None of these decisions has one.")];
  if (entries.length > SHORT) {
    const more = make("button", { type: "button", class: "more", "data-key": `more ${key}`,
      "aria-expanded": String(expanded.has(key)) },
      expanded.has(key) ? "Show fewer" : `Show all ${count(entries.length)}`);
    more.addEventListener("click", () => {
      if (!expanded.delete(key)) expanded.add(key);
      render();
    });
    parts.push(more);
  }
  return card(key, title, ...parts);
}

// A chart of a column that no row has says nothing.
const used = dimensions.filter(({ key, column, isList }) =>
  key !== "action" && rows.some((row) => (isList ? row[column].length > 0 : row[column] !== 0)));

function drawCharts(counts) {
  const cards = period ? [timeChart(counts.time)] : [];
  for (const dimension of used) cards.push(barChart(dimension, counts[dimension.key]));
  byId("charts").replaceChildren(...cards);
}
