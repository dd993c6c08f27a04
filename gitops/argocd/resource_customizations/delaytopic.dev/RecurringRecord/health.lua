-- What Argo CD shows for a RecurringRecord.

local function condition(name)
  if obj.status ~= nil and obj.status.conditions ~= nil then
    for _, each in ipairs(obj.status.conditions) do
      if each.type == name then
        return each
      end
    end
  end
  return nil
end

local function message(each, otherwise)
  if each ~= nil and each.message ~= nil and each.message ~= "" then
    return each.message
  end
  return otherwise
end

local ready = condition("Ready")

-- Being deleted: with deletionPolicy Cancel it waits until its cancel is written, and Ready says what for.
if obj.metadata.deletionTimestamp ~= nil then
  if ready ~= nil and ready.status ~= "True" then
    return {status = "Progressing", message = message(ready, "Being deleted")}
  end
  return {status = "Progressing", message = "Being deleted"}
end

if obj.status == nil or obj.status.observedGeneration == nil then
  return {status = "Progressing", message = "Waiting for the operator"}
end

if obj.status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "Waiting for the operator to see the latest change"}
end

local stalled = condition("Stalled")
if stalled ~= nil and stalled.status == "True" then
  return {status = "Degraded", message = message(stalled, "Needs a change by a person")}
end

if ready ~= nil and ready.status == "True" then
  return {status = "Healthy", message = message(ready, "")}
end

-- Suspended in its spec: somebody asked for it, and nothing is wrong.
if ready ~= nil and ready.reason == "Suspended" then
  return {status = "Suspended", message = message(ready, "Suspended by spec.suspend")}
end

return {status = "Progressing", message = message(ready, "Not written yet")}
