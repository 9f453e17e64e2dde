// Which values of columns are good, worth a look, or bad news.

const COLUMNS = new Set([
  "Status",
  "Phase",
  "State",
  "Ready",
  "Type",
  "Established",
  "Available",
  "Condition",
]);
const GOOD =
  /^(?:Running|Active|Ready|Bound|True|Available|Complete|Completed|Succeeded|Established|Approved.*|Normal)$/;
const WATCHED =
  /^(?:Pending|ContainerCreating|PodInitializing|Init:.*|Terminating|Released|Unknown|Suspended|Warning|SchedulingDisabled)$/;
const BAD =
  /^(?:Failed|Error|.*BackOff|Err.*|OOMKilled|Evicted|NotReady.*|False|Lost|Denied|FailedCreate|Invalid.*|.*Error)$/;

/** `good`, `watched`, `bad`, or nothing, for the cell of a column. */
export function tone(column, text) {
  if (!COLUMNS.has(column)) return undefined;
  const parts = /^(\d+)\/(\d+)$/.exec(text);
  if (parts) return parts[1] === parts[2] ? "good" : "watched";
  if (GOOD.test(text)) return "good";
  if (WATCHED.test(text)) return "watched";
  return BAD.test(text) ? "bad" : undefined;
}
