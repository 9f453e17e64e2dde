//! Rows recorded from upstream's validation and authenticator v1.36.3
//! (`k8s.io/apiserver/pkg/apis/apiserver/validation`, `plugin/pkg/authenticator/token/oidc`).

use pintle_value::{Value, json};

use super::{Configuration, KeySet, WebToken};

/// Parts of upstream's errors that name Go, its libraries or the clock. For such an error, any
/// error is accepted.
const UPSTREAM_WORDS: [&str; 9] = [
    "json: ",
    "malformed jwt",
    "strconv",
    "apiserver.A",
    "Syntax error",
    "is missing in",
    "Token Expiry",
    "current time",
    "could not expand distributed claims",
];

/// The tokens that are deliberately handled differently from upstream.
const DIFFERENT: [&str; 5] = [
    // RFC 7518 requires 2048 bits.
    "a key of 1024 bits",
    // Pintle takes the last of duplicate members; upstream's two JSON readers differ.
    "an algorithm twice",
    // Pintle leaves the token to other authenticators; upstream returns an error.
    "the audience in capitals, too",
    // The result of `split()` is a list.
    "celbad: a text",
    "type: \"v\":-0",
];

fn rows(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| json::parse(line.as_bytes()).unwrap())
}

fn differs_in_words(error: &str) -> bool {
    UPSTREAM_WORDS.iter().any(|words| error.contains(words))
}

#[test]
fn configurations_are_validated_as_upstream() {
    let disallowed = ["https://kubernetes.default.svc".to_owned()];
    let mut differences = Vec::new();
    for row in rows(include_str!("configurations.jsonl")) {
        let configuration = row.get("config").unwrap();
        let expected = row.str_at(&["error"]);
        let found =
            Configuration::read(configuration, &disallowed).err().map(|why| why.to_string());
        let is_as_expected = match (&found, expected) {
            (None, None) => true,
            (Some(_), Some(expected)) if differs_in_words(expected) => true,
            (Some(found), Some(expected)) => {
                let expected = expected.split(" in scheme ").next().unwrap_or_default();
                found.trim_start_matches("invalid authentication configuration: ") == expected
            }
            _ => false,
        };
        if !is_as_expected {
            differences
                .push(format!("{}\n  {found:?}\n  {expected:?}", json::to_string(configuration)));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Authenticates a token: the user as JSON, an error, or nothing if no provider claims the token.
fn verdict(
    issuer: &super::Issuer,
    token: &str,
    keys: &KeySet,
    now: i64,
) -> Option<Result<String, String>> {
    let token = WebToken::parse(token)?;
    if token.issuer() != issuer.url {
        return None;
    }
    let refused = |why: String| format!("oidc: verify token: {why}");
    let signing = match issuer.check(&token, now) {
        Ok(signing) => signing,
        Err(why) => return Some(Err(refused(why))),
    };
    let Some(user) = issuer.user(&token, &signing, keys) else {
        return Some(Err(refused(
            "failed to verify signature: failed to verify id token signature".to_owned(),
        )));
    };
    Some(user.map(|user| {
        let texts = |texts: &[String]| {
            Value::Array(texts.iter().map(|text| text.as_str().into()).collect())
        };
        let mut shown = pintle_value::Map::new();
        if !user.extra.is_empty() {
            let extra = user.extra.iter().map(|(key, values)| (key.as_str().into(), texts(values)));
            shown.insert("extra", Value::Object(extra.collect()));
        }
        if !user.groups.is_empty() {
            shown.insert("groups", texts(&user.groups));
        }
        if !user.uid.is_empty() {
            shown.insert("uid", user.uid.as_str());
        }
        shown.insert("username", user.name.as_str());
        json::to_string(&Value::Object(shown))
    }))
}

#[test]
fn tokens_are_authenticated_as_upstream() {
    let mut rows = rows(include_str!("tokens.jsonl"));
    let head = rows.next().unwrap();
    let keys = KeySet::read(json::to_string(head.get("keys").unwrap()).as_bytes()).unwrap();
    let now = head.get("now").and_then(Value::as_int).unwrap();
    let mut differences = Vec::new();
    for row in rows {
        let text = |member: &str| row.str_at(&[member]);
        let configuration = head.at(&["configs", text("config").unwrap()]).unwrap();
        let configuration = Configuration::read(configuration, &[]).unwrap();
        let found = verdict(&configuration.issuers[0], text("token").unwrap(), &keys, now);
        let expected = row.get("user").map(|user| Ok(json::to_string(user)));
        let expected = expected.or_else(|| text("error").map(|why| Err(why.to_owned())));
        let is_different = DIFFERENT.contains(&text("name").unwrap());
        let is_as_expected = match (&found, &expected) {
            (found, expected) if is_different => found != expected,
            (Some(Err(_)), Some(Err(why))) if differs_in_words(why) => true,
            (found, expected) => found == expected,
        };
        if !is_as_expected {
            differences.push(format!("{}\n  {found:?}\n  {expected:?}", text("name").unwrap()));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
