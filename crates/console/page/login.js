// The login: a bearer token, or the browser's client certificate.

import { fill, h } from "./dom.js";
import { keepToken, whoAmI } from "./session.js";

/** Shows the login; `entered` is called with the user. */
export function showLogin(entered, reason = "") {
  const input = h("input", {
    type: "password",
    id: "token",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "eyJhbGciOi…",
    required: true,
  });
  const said = h("p.said", { role: "alert" }, reason);
  const submit = h("button.primary", { type: "submit" }, "Log in");
  const form = h(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        enter();
      },
    },
    h("label", { for: "token" }, "Bearer token"),
    input,
    submit,
    said,
  );
  const command = (text) => h("pre", { tabindex: "0" }, text);

  async function enter() {
    submit.disabled = true;
    said.textContent = "";
    keepToken(input.value.trim());
    try {
      const user = await whoAmI();
      if (user) {
        entered(user);
        return;
      }
      said.textContent = "The server takes you for a stranger with this token.";
    } catch (error) {
      said.textContent = error.code === 401 ? "The server does not accept this token." : error.message;
    }
    keepToken("");
    submit.disabled = false;
    input.select();
  }

  fill(
    document.body,
    h(
      "main.login",
      {},
      h(
        "div.panel",
        {},
        h("img", { src: "icon.svg", alt: "", width: "48", height: "48" }),
        h("h1", {}, "Pintle"),
        h("p.lead", {}, "Log in with a token of this API server."),
        form,
        h(
          "details",
          {},
          h("summary", {}, "Where do I get a token?"),
          h("p", {}, "From a service account that may do what you want to do here:"),
          command(
            "kubectl create serviceaccount console\nkubectl create clusterrolebinding console \\\n  --clusterrole=view --serviceaccount=default:console\nkubectl create token console",
          ),
          h(
            "p",
            {},
            "Or take the one of your OpenID provider. A browser that has a client certificate of the server's authority needs no token: load the page again.",
          ),
        ),
        h(
          "p.fine",
          {},
          "The token stays in this tab, is sent to this server only, and is forgotten when the tab is closed.",
        ),
      ),
    ),
  );
  input.focus();
}
