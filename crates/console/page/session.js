// The session: the user's token and requests with it. The token is kept in memory and in the tab's
// sessionStorage, is sent to this server only, and is forgotten when the tab is closed or the user logs out.

const KEY = "pintle.token";

let token = sessionStorage.getItem(KEY) ?? "";
let onEnd = () => {};

/** A response that is not a success, or no response at all (`code` 0). */
export class Failure extends Error {
  constructor(code, message, status = {}) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Calls `run` when the server no longer accepts the credentials. */
export function whenEnded(run) {
  onEnd = run;
}

/** Keeps a token, or forgets it. */
export function keepToken(next) {
  token = next;
  if (next) sessionStorage.setItem(KEY, next);
  else sessionStorage.removeItem(KEY);
}

export const hasToken = () => token !== "";

/**
 * Sends a request and returns its response, or throws a `Failure`. Without a token the browser's client
 * certificate speaks for the user.
 */
export async function request(path, { headers = {}, ...rest } = {}) {
  const sent = { accept: "application/json", ...headers };
  if (token) sent.authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, {
      ...rest,
      headers: sent,
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(
      0,
      "The server does not answer. Is it running, and does the browser trust its certificate?",
    );
  }
  if (response.ok) return response;
  const text = await response.text();
  const status = parse(text);
  const failure = new Failure(
    response.status,
    status.message ?? (text.trim() || response.statusText),
    status,
  );
  if (response.status === 401) onEnd(failure);
  throw failure;
}

function parse(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** Sends a request and reads its JSON. */
export async function read(path, options) {
  return (await request(path, options)).json();
}

/** Reads a response line by line, each a JSON document, until it ends. */
export async function* documents(response) {
  const decoder = new TextDecoderStream();
  const reader = response.body.pipeThrough(decoder).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}

/** Who the server takes the user for; `undefined` for a stranger. */
export async function whoAmI() {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const options = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(review),
  };
  try {
    const { status } = await read(path, options);
    return known(status.userInfo);
  } catch (error) {
    if (error.code !== 403) throw error;
    // Who may not ask is named in the refusal.
    return known({ username: /^[^"]*\bUser "([^"]+)"/i.exec(error.message)?.[1] });
  }
}

const known = (user) => (user.username && user.username !== "system:anonymous" ? user : undefined);
