// The dialog with everything about one row, and the picture of its counterparties.

// An address keeps its end when it is cut, another text its beginning.
const short = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 5)}…${text.slice(-4)}`);
const cut = (text, length) => (text.length <= length ? text : `${text.slice(0, length - 1)}…`);

const counterparty = ([address, direction, amount, symbol, transactions, entity, level, types]) => ({
  address, amount, transactions, direction: textOf(direction), symbol: textOf(symbol), entity: textOf(entity),
  level: textOf(level), types: textOf(types),
});

// The class and the sign of a level: colour is not the only difference.
function levelMark(level, x, y) {
  const rank = data.levels.indexOf(level);
  if (level === "") return makeSvg("circle", { class: "fill-none", cx: x, cy: y, r: 5 });
  if (rank === 0) return makeSvg("rect", { class: "fill-block", x: x - 6, y: y - 6, width: 12, height: 12 });
  if (rank === 2 || rank === 3) return makeSvg("circle", { class: "fill-allow", cx: x, cy: y, r: 6 });
  return makeSvg("path", { class: "fill-review", d: `M${x} ${y - 7}l7 13h-14z` });
}

function amountText({ amount, symbol }) {
  return amount === null ? "" : `${amount.toLocaleString("en", { maximumFractionDigits: 2 })} ${shown(symbol)}`.trim();
}

// Where the money comes from on the left, the address in the middle, where it goes on the right.
function picture(address, list, width) {
  const sides = [list.filter(({ direction }) => direction === "in"), list.filter(({ direction }) => direction !== "in")];
  const gap = 40, top = 34;
  const height = top + Math.max(2, sides[0].length, sides[1].length) * gap;
  const middle = [width / 2, top + (height - top) / 2];
  const most = {};
  for (const { amount, symbol } of list) most[symbol] = Math.max(most[symbol] ?? 0, amount ?? 0);
  const labelWidth = Math.floor((width - (width < 500 ? 100 : 220)) / 2);
  const letters = Math.max(9, Math.floor((labelWidth - 12) / 8.2));
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img",
    "aria-label": `${sides[0].length} counterparties that send and ${sides[1].length} that receive; the table has the same figures` });
  const write = (text, x, y, anchor, name) => {
    const label = makeSvg("text", { x, y, "text-anchor": anchor, class: name });
    label.textContent = text;
    svg.append(label);
  };
  write("Sends to the address", 4, 14, "start", "axis");
  write("Receives from it", width - 4, 14, "end", "axis");
  sides.forEach((side, place) => {
    const offset = (height - top - side.length * gap) / 2;
    side.forEach((one, index) => {
      const y = top + offset + index * gap + gap / 2;
      const x = place === 0 ? labelWidth : width - labelWidth;
      const weight = 1 + 7 * (most[one.symbol] ? (one.amount ?? 0) / most[one.symbol] : 0);
      const end = middle[0] + (place === 0 ? -18 : 18), bend = (x + end) / 2;
      svg.append(makeSvg("path", { class: "flow", "stroke-width": weight.toFixed(1),
        d: `M${x} ${y}C${bend} ${y} ${bend} ${middle[1]} ${end} ${middle[1]}` }));
      svg.append(levelMark(one.level, x, y));
      const anchor = place === 0 ? "end" : "start", at = x + (place === 0 ? -12 : 12);
      const name = one.entity ? cut(shown(one.entity), letters) : short(shown(one.address), letters);
      write(name, at, y - 2, anchor, "name");
      write(cut([amountText(one), shown(one.types)].filter(Boolean).join(" · "), letters + 2), at, y + 13, anchor, "axis");
    });
  });
  svg.append(makeSvg("circle", { class: "fill-accent", cx: middle[0], cy: middle[1], r: 16 }));
  write(short(shown(address), 13), middle[0], middle[1] + 34, "middle", "name");
  return svg;
}

function counterpartyTable(list) {
  const heads = ["Direction", "Counterparty", "Amount", "Transactions", "Risk"];
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counterparties" },
    make(
      "table",
      { class: "plain" },
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...list.map((one) =>
        make("tr", {},
          make("td", {}, one.direction || "–"),
          make("td", {}, make("bdi", {}, [shown(one.entity), shown(one.address)].filter(Boolean).join(", "))),
          make("td", { class: "number" }, amountText(one) || "–"),
          make("td", { class: "number" }, one.transactions === null ? "–" : count(one.transactions)),
          make("td", {}, [shown(one.level), shown(one.types)].filter(Boolean).join(", ") || "–")))),
    ),
  );
}

// The fields that the dialog does not show elsewhere.
function factsOf(row) {
  const list = [];
  for (const field of fields) {
    if (field.column === TIME) list.push([field.title, row[TIME] === null ? "" : `${dateText(row[TIME])} UTC`]);
    else if (![ADDRESS, ACTION, REASONS].includes(field.column)) list.push([field.title, textIn(row, field, ", ")]);
  }
  for (let at = 0; at < row[OTHERS].length; at += 2) list.push([textOf(row[OTHERS][at]), row[OTHERS][at + 1]]);
  return list.filter(([, value]) => value !== "");
}

function drawDetails() {
  const dialog = byId("details"), row = state.row === undefined ? undefined : rows[Number(state.row)];
  if (!row) {
    if (dialog.open) dialog.close();
    return;
  }
  byId("details-title").replaceChildren(
    verdict(textOf(row[ACTION])), " ",
    make("bdi", { class: "mono" }, shown(row[ADDRESS]) || "(no address)"));
  const facts = make("dl", {}, ...factsOf(row).flatMap(([name, value]) =>
    [make("dt", {}, shown(name)), make("dd", {}, make("bdi", {}, shown(value)))]));
  const reasons = textOf(row[REASONS]).split("\n").filter(Boolean);
  const content = [make("ul", { class: "reasons" }, ...reasons.map((reason) => make("li", {}, make("bdi", {}, shown(reason))))), facts];
  if (row[ADDRESS] !== "") {
    const same = rows.reduce((total, other) => total + (other[ADDRESS] === row[ADDRESS]), 0);
    content.push(make("p", {}, make("a", { href: hashOf({ address: row[ADDRESS] }), "data-key": "same" },
      same === 1 ? "The only decision about this address" : `All ${count(same)} decisions about this address`)));
  }
  byId("details-content").replaceChildren(...content);
  if (!dialog.open) dialog.showModal();
  if (row[COUNTERPARTIES]) {
    const [total, ...found] = row[COUNTERPARTIES];
    const list = found.map(counterparty);
    const width = Math.max(280, Math.min(860, byId("details-content").clientWidth));
    byId("details-content").append(
      make("h3", {}, total > list.length ? `Counterparties: ${list.length} of ${count(total)}` : "Counterparties"),
      picture(row[ADDRESS], list, width), counterpartyTable(list));
  }
  byId("details-title").focus();
}
