// A credential plugin, as kubectl and the clients run them: logs in at an OpenID provider by the authorization
// code flow with PKCE, fills in its forms as a person would, and prints the token.

import { createHash, randomBytes } from 'node:crypto';

const [issuer, client, account] = process.argv.slice(2);
const redirect = 'http://127.0.0.1/callback';
const cookies = new Map();

// Sends a request, and stores the provider's cookies.
async function ask(url, form) {
  const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  const body = form && new URLSearchParams(form);
  const answer = await fetch(url, { method: form ? 'POST' : 'GET', headers, body, redirect: 'manual' });
  for (const cookie of answer.headers.getSetCookie()) {
    const [name, value] = cookie.split(';')[0].split(/=(.*)/s);
    cookies.set(name, value);
  }
  return answer;
}

const discovery = await (await ask(`${issuer}/.well-known/openid-configuration`)).json();
const verifier = randomBytes(32).toString('base64url');
const query = new URLSearchParams({
  client_id: client,
  response_type: 'code',
  scope: 'openid',
  redirect_uri: redirect,
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
});
let url = `${discovery.authorization_endpoint}?${query}`;
let answer = await ask(url);
for (let step = 0; !url.startsWith(redirect); step++) {
  if (step === 20) throw new Error(`the login does not end: ${url}`);
  const location = answer.headers.get('location');
  if (location) {
    url = new URL(location, url).href;
    if (!url.startsWith(redirect)) answer = await ask(url);
    continue;
  }
  const page = await answer.text();
  const action = page.match(/<form[^>]* action="([^"]+)"/)?.[1];
  const prompt = page.match(/name="prompt" value="([^"]+)"/)?.[1];
  if (!action || !prompt) throw new Error(`no form at ${url}: ${page}`);
  url = new URL(action, url).href;
  answer = await ask(url, { prompt, login: account, password: 'of no use' });
}

const token = await ask(discovery.token_endpoint, {
  grant_type: 'authorization_code',
  client_id: client,
  redirect_uri: redirect,
  code: new URL(url).searchParams.get('code'),
  code_verifier: verifier,
});
const { id_token } = await token.json();
const status = { token: id_token };
console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status }));
