-- Pays what the service allows, and holds the rest for a person. It may be killed at any time and started again.
-- `riskscreen explore examples/payouts.lua` runs it under every schedule of faults.

-- `payments` is the program's way to its payment system: inputs, paid(id), pay(id) and hold(id).
local function pay_all(client, payments)
  for _, payout in ipairs(payments.inputs) do
    -- Ask the payment system, not a note of this program's: a kill may come between a payment and its note.
    if not payments.paid(payout.id) then
      local decision = client:screen { address = payout.address, network = payout.network, id = payout.id }
      if decision.action == "allow" and not decision.degraded then
        payments.pay(payout.id)
      else
        payments.hold(payout.id)
      end
    end
  end
end

return pay_all
