-- One pass now, instead of at the next resync.

local os = require("os")

if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["delaytopic.dev/reconcile-requested-at"] = os.date("!%Y-%m-%dT%XZ")
return obj
