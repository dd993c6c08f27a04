-- The operator does again what the spec says.

if obj.metadata.annotations ~= nil then
  obj.metadata.annotations["delaytopic.dev/pause-reconciliation"] = nil
end
return obj
