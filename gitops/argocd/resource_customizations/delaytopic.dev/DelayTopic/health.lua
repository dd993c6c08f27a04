-- What Argo CD shows for a DelayTopic. Lateness has no say here: a burst of records must not block a sync wave.

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

local function holds(name)
  local each = condition(name)
  return each ~= nil and each.status == "True"
end

local function message(name, otherwise)
  local each = condition(name)
  if each ~= nil and each.message ~= nil and each.message ~= "" then
    return each.message
  end
  return otherwise
end

-- Being deleted: pending records may still leave at their own time, which takes up to drainTimeout. With
-- deletionPolicy Delete it waits for a person to confirm.
if obj.metadata.deletionTimestamp ~= nil then
  if holds("Stalled") then
    return {status = "Degraded", message = message("Stalled", "Needs a person")}
  end
  return {status = "Progressing", message = message("Draining", "Being deleted")}
end

-- A paused object never catches up with its generation, so this is asked before the generation is.
if holds("Paused") then
  return {status = "Suspended", message = message("Paused", "Reconciliation is paused")}
end

if obj.status == nil or obj.status.observedGeneration == nil then
  return {status = "Progressing", message = "Waiting for the operator"}
end

if obj.status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "Waiting for the operator to see the latest change"}
end

if holds("Stalled") then
  return {status = "Degraded", message = message("Stalled", "Needs a change by a person")}
end

if holds("Reconciling") then
  return {status = "Progressing", message = message("Reconciling", "A change is being applied")}
end

local ready = condition("Ready")
if ready ~= nil and ready.status == "True" then
  return {status = "Healthy", message = message("Ready", "")}
end

-- Suspended in its spec: somebody asked for it, and nothing is wrong.
if ready ~= nil and ready.reason == "Suspended" then
  return {status = "Suspended", message = message("Ready", "Suspended by spec.suspend")}
end

return {status = "Progressing", message = message("Ready", "Not ready yet")}
