-- The operator writes nothing but the status; relays run on.

if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["delaytopic.dev/pause-reconciliation"] = "true"
return obj
