-- The buttons that Argo CD offers for a DelayTopic.

local annotations = obj.metadata.annotations or {}
local paused = annotations["delaytopic.dev/pause-reconciliation"] == "true"

local actions = {}
actions["pause"] = {
  ["disabled"] = paused,
  ["iconClass"] = "fa fa-fw fa-pause",
  ["displayName"] = "Pause reconciliation (relays run on)"
}
actions["resume"] = {
  ["disabled"] = not paused,
  ["iconClass"] = "fa fa-fw fa-play",
  ["displayName"] = "Resume reconciliation"
}
actions["reconcile"] = {
  ["disabled"] = paused,
  ["iconClass"] = "fa fa-fw fa-rotate-right",
  ["displayName"] = "Reconcile now"
}
return actions
