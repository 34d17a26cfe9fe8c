// Formats the Lua files given (or, with --check, names those that are not formatted), as stylua.toml says.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Config, formatCode, OutputVerification, LuaVersion, IndentType, QuoteStyle, CallParenType } = createRequire(
  process.env.STYLUA_ROOT + "/",
)("@johnnymorganz/stylua");

const settings = {};
for (const line of readFileSync("stylua.toml", "utf8").split("\n")) {
  const match = line.match(/^(\w+) = "?([^"]+)"?$/);
  if (match) settings[match[1]] = match[2];
}

function config() {
  const result = Config.new();
  result.syntax = LuaVersion[settings.syntax];
  result.column_width = Number(settings.column_width);
  result.indent_type = IndentType[settings.indent_type];
  result.indent_width = Number(settings.indent_width);
  result.quote_style = QuoteStyle[settings.quote_style];
  result.call_parentheses = CallParenType[settings.call_parentheses];
  return result;
}

const check = process.argv[2] === "--check";
const files = process.argv.slice(check ? 3 : 2);
let unformatted = 0;
for (const file of files) {
  const text = readFileSync(file, "utf8");
  const formatted = formatCode(text, config(), undefined, OutputVerification.None);
  if (formatted === text) continue;
  unformatted += 1;
  console.log(`${check ? "not formatted" : "formatted"}: ${file}`);
  if (!check) writeFileSync(file, formatted);
}
process.exit(check && unformatted > 0 ? 1 : 0);
