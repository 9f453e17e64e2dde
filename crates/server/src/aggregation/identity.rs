//! The headers that name the user to an extension API server, as a front proxy sends them.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use pintle_auth::User;
use pintle_meta::quote::quote;

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA_PREFIX: &str = "x-remote-extra-";

/// Replaces the identity headers by those of `user`; an error if a value cannot be sent.
pub(super) fn write(user: &User, headers: &mut HeaderMap) -> Result<(), String> {
    let previous: Vec<HeaderName> = headers
        .keys()
        .filter(|name| **name == USER || **name == UID || **name == GROUP || is_extra(name))
        .cloned()
        .collect();
    previous.iter().for_each(|name| drop(headers.remove(name)));
    add(headers, USER, &user.name)?;
    if !user.uid.is_empty() {
        add(headers, UID, &user.uid)?;
    }
    for group in &user.groups {
        add(headers, GROUP, group)?;
    }
    for (key, values) in &user.extra {
        let name = format!("{EXTRA_PREFIX}{}", escaped(key));
        let name = HeaderName::try_from(name).map_err(|why| why.to_string())?;
        for value in values {
            add(headers, name.clone(), value)?;
        }
    }
    Ok(())
}

fn is_extra(name: &HeaderName) -> bool {
    name.as_str().starts_with(EXTRA_PREFIX)
}

/// Refuses a value with surrounding space: the space would be lost, and the value would name
/// another user.
fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), String> {
    let is_unchanged = value.trim_matches([' ', '\t']) == value;
    let valid = HeaderValue::from_bytes(value.as_bytes()).ok().filter(|_| is_unchanged);
    match valid {
        Some(value) => {
            headers.append(name, value);
            Ok(())
        }
        None => Err(format!("net/http: invalid header field value for {}", quote(name.as_str()))),
    }
}

/// Escapes a key of extra for a header name: percent signs and characters that are not allowed in
/// tokens (upstream: `headerKeyEscape`).
fn escaped(key: &str) -> String {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if is_token(byte) {
            out.push(char::from(byte))
        } else {
            out.push_str(&format!("%{byte:02X}"))
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> User {
        User { name: name.to_owned(), ..User::default() }
    }

    #[test]
    fn the_clients_identity_headers_are_replaced() {
        let mut headers = HeaderMap::new();
        for name in ["x-remote-user", "x-remote-uid", "x-remote-group", "x-remote-extra-a"] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("root"));
        }
        let extra = vec![("example.com/Scopes%é".to_owned(), vec!["a".to_owned(), "b".to_owned()])];
        let groups = vec!["g".to_owned(), "h".to_owned()];
        write(&User { groups, extra, ..user("jane") }, &mut headers).unwrap();
        let mut found: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        found.sort_unstable();
        let expected = [
            "x-remote-extra-example.com%2fscopes%25%c3%a9: a",
            "x-remote-extra-example.com%2fscopes%25%c3%a9: b",
            "x-remote-group: g",
            "x-remote-group: h",
            "x-remote-user: jane",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn values_that_would_change_the_user_are_refused() {
        for name in [" root", "root ", "a\nx-remote-group: system:masters", "a\r", "root\t"] {
            let refused = write(&user(name), &mut HeaderMap::new());
            let expected = "net/http: invalid header field value for \"x-remote-user\"";
            assert_eq!(refused, Err(expected.to_owned()), "{name:?}");
        }
        assert_eq!(write(&user("Jürgen"), &mut HeaderMap::new()), Ok(()));
    }
}
