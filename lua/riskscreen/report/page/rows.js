// The rows of the page and the texts that they share. A number in a text's place is an index of `texts`; 0 is no text.

const data = JSON.parse(document.getElementById("data").textContent);
const texts = ["", ...data.texts];
const rows = data.rows;

const TIME = 0, ADDRESS = 1, NETWORK = 2, ACTION = 3, LEVEL = 4, ENTITY = 5, CATEGORY = 6, REASONS = 7, SOURCE = 8;
const ERROR = 9, CASE = 10, ANALYST = 11, TYPES = 12, OTHERS = 13, COUNTERPARTIES = 14;

const ACTIONS = ["block", "review", "unknown", "allow"];
const NAMES = { block: "Block", review: "Review", unknown: "Unknown", allow: "Allow" };

const numberOfText = new Map(texts.map((text, number) => [text, number]));
const textOf = (value) => (typeof value === "number" ? texts[value] : value);
const valueOf = (text) => numberOfText.get(text) ?? text;

// The fields of a decision: what people call them, and their columns in files of the command. A field with a key has a
// chart and a filter.
const fields = [
  { column: TIME, title: "Time", csv: "time" },
  { column: ADDRESS, title: "Address", csv: "address" },
  { column: NETWORK, title: "Network", csv: "network", key: "network", absent: "no network" },
  { column: ACTION, title: "Verdict", csv: "action", key: "action" },
  { column: REASONS, title: "Reasons", csv: "reasons" },
  { column: LEVEL, title: "Risk level", csv: "risk_levels", key: "level", absent: "no level" },
  { column: TYPES, title: "Risk type", csv: "risk_types", key: "type", absent: "no type", isList: true },
  { column: ENTITY, title: "Entity", csv: "entity", key: "entity", absent: "no entity" },
  { column: CATEGORY, title: "Category", csv: "category" },
  { column: SOURCE, title: "Source", csv: "source", key: "source" },
  { column: ERROR, title: "Failure", csv: "error", key: "error" },
  { column: CASE, title: "Case", csv: "case", key: "case", absent: "no case" },
  { column: ANALYST, title: "Analyst", csv: "analyst", key: "analyst", absent: "no analyst" },
];

// The text of a row's field, but for the time.
const textIn = (row, { column, isList }, between) => (isList ? row[column].map(textOf).join(between) : textOf(row[column]));

// The place of each action's number in ACTIONS.
const actionIndex = new Map(ACTIONS.map((action, index) => [valueOf(action), index]));

// The order of the shared texts, for sorting.
let ranks;
function rankOf(value) {
  if (!ranks) {
    const order = texts.map((_, number) => number);
    order.sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0));
    ranks = [];
    order.forEach((number, rank) => (ranks[number] = rank));
  }
  return typeof value === "number" ? ranks[value] : texts.length;
}

const levelRank = (value) => {
  const rank = data.levels.indexOf(textOf(value));
  return value === 0 ? data.levels.length + 1 : rank;
};

const count = (number) => number.toLocaleString("en");

const two = (number) => String(number).padStart(2, "0");
function dateText(seconds, withTime = true) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  const day = `${date.getUTCFullYear()}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
  return withTime ? `${day} ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}` : day;
}

// Characters that are not seen, or that reorder the text around them, are shown by their code.
const hidden = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
const shown = (text) =>
  text.replace(hidden, (character) => `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

// An element with attributes and children. Texts become text nodes, never HTML.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function makeSvg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);

// Each verdict has a shape of its own, so that colour is never the only sign.
const SHAPES = {
  block: ["M5 1h6l4 4v6l-4 4H5l-4-4V5z", "M4.5 7h7v2h-7z"],
  review: ["M8 1l7.5 14H.5z", "M7.2 6h1.6v4.4H7.2zM7.2 11.6h1.6v1.7H7.2z"],
  unknown: ["M8 .5L15.5 8 8 15.5.5 8z", "M7.2 10.600h1.600v1.600H7.200zM5.6 6.400C5.6 3 10.4 3 10.4 6.2 10.4 7.8 8.8 8 8.8 9.600H7.200C7.2 7.4 8.8 7.2 8.8 6.2 8.8 5.2 7.2 5.2 7.2 6.400z"],
  allow: ["M8 1a7 7 0 110 14A7 7 0 018 1z", "M6.9 11.200L3.9 8.300l1.1-1.1 1.9 1.8 4.1-4.2 1.1 1.100z"],
};
function icon(action) {
  const [outline, sign] = SHAPES[action];
  return makeSvg(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
    makeSvg("path", { class: `fill-${action}`, d: outline }),
    makeSvg("path", { class: "fill-on", d: sign }),
  );
}

const PAINT = { review: "url(#pattern-review)", unknown: "url(#pattern-unknown)" };
function block(action, x, y, width, height) {
  const rect = makeSvg("rect", { x, y, width, height });
  if (PAINT[action]) rect.setAttribute("fill", PAINT[action]);
  else rect.setAttribute("class", `paint-${action}`);
  return rect;
}
