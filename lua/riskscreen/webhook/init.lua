-- Webhooks of the service: parse one event, or receive them with an inbox.
local event = require "riskscreen.webhook.event"
local inbox = require "riskscreen.webhook.inbox"

return { MAX_SIZE = event.MAX_SIZE, parse = event.parse, inbox = inbox.new }
