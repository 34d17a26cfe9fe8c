---@meta
-- Written by tools/generate.lua, for editors.

local inboxes = {}

---An inbox for all workers. Make it in init_by_lua and call `inbox:serve()` in a content handler.
---@param given riskscreen.nginx.InboxOptions
---@return riskscreen.Inbox
function inboxes.new(given) end

return inboxes
