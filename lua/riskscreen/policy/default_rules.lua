-- The rules of the default policy for addresses, in the order in which they are tried. Data only.
return {
  { name = "never at any level", type = { "sanction", "terrorist", "csam" }, action = "block" },
  { name = "high risk", level = "high", action = "block" },
  { name = "elevated risk", level = "generally-high", action = "review" },
  { name = "low risk or whitelisted", level = { "low", "whitelist" }, action = "allow" },
  { name = "no risk", no_risk = true, action = "allow" },
}
