// What a refused write complains about: each problem with the line of the text that it is about.

import { nodeOfField } from "./outline.js";

/**
 * The problems of a failure: `{line, field, message, manager}`. `read` is the outline of the user's text;
 * `lineOf` leads from a line that was sent to the user's line.
 */
export function problems({ message, status }, read, lineOf = (line) => line) {
  const causes = status.details?.causes ?? [];
  const found = causes.length > 0 ? causes.map(ofCause) : [...ofMessage(message)];
  const all = found.length > 0 ? found : [{ message }];
  return all.map((problem) => ({
    ...problem,
    line: problem.at === undefined ? lineOfField(read, problem.field) : lineOf(problem.at),
  }));
}

function ofCause({ reason, message = "", field = "" }) {
  const manager =
    reason === "FieldManagerConflict" ? /^conflict with "((?:[^"\\]|\\.)*)"/.exec(message)?.[1] : undefined;
  return { field, message: manager === undefined ? message : `${manager} owns this field`, manager };
}

/** Problems that are written into the message: of the parser, of schemas, of strict decoding. */
function* ofMessage(message) {
  const line = /yaml: (?:unmarshal errors:\s*)?line (\d+): ([^\n]*)/.exec(message);
  if (line) yield { at: Number(line[1]) - 1, message: line[2] };
  for (const [, what, field] of message.matchAll(/(unknown|duplicate) field "([^"]+)"/g))
    yield { field, message: `${what} field` };
  for (const [, field, what] of message.matchAll(/(?:^|[\s:])(\.[^\s:]+): ([^\n]*?)(?=,? \.[\w[]|\n|$)/g))
    yield { field, message: what };
}

function lineOfField({ root }, field) {
  return field ? nodeOfField(root, field)?.line : undefined;
}
