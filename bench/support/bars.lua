-- A chart of a benchmark's report as an SVG image: a bar for each row. Its length is the ratio to the chart's base.

local M = {}

local WIDTH, LABELS, FIGURES = 860, 300, 150 -- pixels: all, left of the bars, right of them
local BAR, LINE, MARGIN = 14, 20, 8
local OURS, PEER, TEXT = "#2f6fdb", "#9aa4b0", "#6b7480" -- readable on light and dark pages

local function escaped(text)
  return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

local function text(x, y, words, more)
  return ('<text x="%d" y="%d" fill="%s"%s>%s</text>'):format(x, y, TEXT, more or "", escaped(words))
end

---@param chart riskscreen.bench.Chart
---@param figure fun(number: number): string
---@return string
function M.svg(chart, figure)
  local longest = 0
  for _, row in ipairs(chart.rows) do
    longest = math.max(longest, row.ratio)
  end
  local scale = (WIDTH - LABELS - FIGURES) / longest
  local out, y, group = {}, MARGIN, nil
  for _, row in ipairs(chart.rows) do
    if row.group ~= group then
      group = row.group
      out[#out + 1] = text(MARGIN, y + BAR - 2, group, ' font-weight="bold"')
      y = y + LINE
    end
    out[#out + 1] = text(LABELS - MARGIN, y + BAR - 2, row.what, ' text-anchor="end"')
    local width = math.max(1, row.ratio * scale)
    local bar = '<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>'
    out[#out + 1] = bar:format(LABELS, y, width, BAR, row.ours and OURS or PEER)
    local value = ("%s %s (%.2f)"):format(figure(row.value), chart.unit, row.ratio)
    out[#out + 1] = text(math.floor(LABELS + width + MARGIN), y + BAR - 2, value)
    y = y + LINE
  end
  local head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img"'
    .. ' font-family="sans-serif" font-size="12">\n<title>%s</title>\n'
  local height = y + MARGIN
  return head:format(WIDTH, height, WIDTH, height, escaped(chart.title)) .. table.concat(out, "\n") .. "\n</svg>\n"
end

return M
