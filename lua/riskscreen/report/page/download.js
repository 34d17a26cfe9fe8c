// The decisions that match, as CSV: with the names of columns that the command uses, so that it reads them again.

const isoText = (seconds) => {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString().replace(".000Z", "Z");
};

function exportedText(row, field) {
  if (field.column === TIME) return row[TIME] === null ? "" : isoText(row[TIME]);
  return textIn(row, field, "; ").replaceAll("\n", "; ");
}

// A cell by RFC 4180. One that a spreadsheet would take for a formula gets an apostrophe in front.
function csvCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(indexes) {
  const places = new Map();
  for (const index of indexes) {
    const others = rows[index][OTHERS];
    for (let at = 0; at < others.length; at += 2) if (!places.has(others[at])) places.set(others[at], places.size);
  }
  const taken = new Set(fields.map(({ csv }) => csv));
  const names = [...places.keys()].map((name) => (taken.has(textOf(name)) ? `other_${textOf(name)}` : textOf(name)));
  const lines = [[...taken, ...names]];
  for (const index of indexes) {
    const row = rows[index], others = row[OTHERS], more = Array(places.size).fill("");
    for (let at = 0; at < others.length; at += 2) more[places.get(others[at])] = others[at + 1];
    lines.push([...fields.map((field) => exportedText(row, field)), ...more]);
  }
  return lines.map((line) => `${line.map(csvCell).join(",")}\r\n`).join("");
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const anchor = make("a", { href: url, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
