//! Bootstrap tokens (`kubeadm join`), which authenticate a machine that has no certificate yet.
//! Each is stored as a secret in `kube-system`.

use aws_lc_rs::constant_time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_meta::{User, object, time};
use pintle_value::Value;

/// The namespace of the secrets.
pub const BOOTSTRAP_NAMESPACE: &str = "kube-system";
/// The type of the secrets.
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 16;
const GROUP_ENDING_BYTES_MAX: usize = 256;

/// A token of the form `ID.SECRET`.
#[derive(Clone, Copy, Debug)]
pub struct BootstrapToken<'t> {
    id: &'t str,
    secret: &'t str,
}

impl<'t> BootstrapToken<'t> {
    /// Parses a token; `None` if it has another form.
    pub fn parse(token: &'t str) -> Option<Self> {
        let (id, secret) = token.split_once('.')?;
        let is_plain =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
        let fits = id.len() == ID_BYTES && secret.len() == SECRET_BYTES;
        (fits && is_plain(id) && is_plain(secret)).then_some(Self { id, secret })
    }

    /// The name of the secret that holds the token.
    pub fn secret_name(self) -> String {
        format!("bootstrap-token-{}", self.id)
    }

    /// Returns the user that the secret defines, or why the token is invalid.
    pub fn authenticate(self, secret: &Value, now_unix_seconds: i64) -> Result<User, &'static str> {
        let data = |key: &str| {
            let encoded = secret.str_at(&["data", key]).unwrap_or_default();
            STANDARD.decode(encoded).unwrap_or_default()
        };
        let text = |key: &str| String::from_utf8(data(key)).unwrap_or_default();
        if object::is_terminating(secret) {
            return Err("the secret is being deleted");
        }
        if secret.str_at(&["type"]) != Some(SECRET_TYPE) {
            return Err("the secret is of another type");
        }
        let secret = data("token-secret");
        if constant_time::verify_slices_are_equal(&secret, self.secret.as_bytes()).is_err() {
            return Err("its token-secret does not match");
        }
        if data("token-id") != self.id.as_bytes() {
            return Err("its token-id does not match");
        }
        let expiration = data("expiration");
        if !expiration.is_empty() && !is_ahead(&text("expiration"), now_unix_seconds) {
            return Err("it has expired, or its expiration is not a time");
        }
        if data("usage-bootstrap-authentication") != b"true" {
            return Err("its usage-bootstrap-authentication is not true");
        }
        let groups =
            groups(&data("auth-extra-groups")).ok_or("its auth-extra-groups are invalid")?;
        Ok(User { name: format!("system:bootstrap:{}", self.id), groups, ..User::default() })
    }
}

fn is_ahead(time: &str, now_unix_seconds: i64) -> bool {
    time::parse(time).is_ok_and(|micros| micros > now_unix_seconds.saturating_mul(1_000_000))
}

/// The sorted groups without duplicates; `None` if one is not a group of bootstrappers.
fn groups(extra: &[u8]) -> Option<Vec<String>> {
    let mut groups = vec![GROUP.to_owned()];
    if !extra.is_empty() {
        let named = std::str::from_utf8(extra).ok()?.split(',');
        groups.extend(named.map(str::to_owned));
        if !groups[1..].iter().all(|group| is_for_bootstrappers(group)) {
            return None;
        }
    }
    groups.sort_unstable();
    groups.dedup();
    Some(groups)
}

/// Upstream: `system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]`
fn is_for_bootstrappers(group: &str) -> bool {
    let Some(ending) = group.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix(':')) else {
        return false;
    };
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    ending.len() <= GROUP_ENDING_BYTES_MAX
        && ending.bytes().all(|byte| is_plain(byte) || byte == b':' || byte == b'-')
        && ending.bytes().next_back().is_some_and(is_plain)
}

#[cfg(test)]
mod tests {
    use pintle_value::{Map, json};

    use super::*;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    #[test]
    fn only_tokens_of_the_form_id_dot_secret_are_parsed() {
        let token = BootstrapToken::parse(TOKEN).unwrap();
        assert_eq!(token.secret_name(), "bootstrap-token-abcdef");
        for other in ["", "abcdef", "Abcdef.0123456789abcdef", "abcdef.0123456789abcde", "abcde.f"]
        {
            assert!(BootstrapToken::parse(other).is_none(), "{other}");
        }
    }

    /// Authenticates the token with a valid secret in which these data are changed; `-` stands for
    /// an empty value.
    fn check(changed: &[(&str, &str)], expected: Result<&[&str], &str>) {
        let mut data = Map::new();
        let good = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("expiration", "1970-01-01T00:01:40Z"),
        ];
        for (key, text) in good.iter().chain(changed) {
            data.insert(*key, if *text == "-" { String::new() } else { STANDARD.encode(text) });
        }
        let mut secret = json::parse(br#"{"type":"bootstrap.kubernetes.io/token"}"#).unwrap();
        secret.make_object().insert("data", data);
        let found = BootstrapToken::parse(TOKEN).unwrap().authenticate(&secret, 99);
        let expected = expected.map(|groups| User {
            name: "system:bootstrap:abcdef".to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        });
        assert_eq!(found, expected, "{changed:?}");
    }

    #[test]
    fn a_bootstrap_token_is_authenticated_by_its_secret() {
        check(&[], Ok(&["system:bootstrappers"]));
        check(&[("expiration", "-")], Ok(&["system:bootstrappers"]));
        let further = "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:a";
        let all = [
            "system:bootstrappers",
            "system:bootstrappers:a",
            "system:bootstrappers:kubeadm:default-node-token",
        ];
        check(&[("auth-extra-groups", further)], Ok(&all));
        for group in [
            "system:masters",
            "system:bootstrappers:",
            "system:bootstrappers:A",
            "a,",
            "system:bootstrappers:-",
        ] {
            check(&[("auth-extra-groups", group)], Err("its auth-extra-groups are invalid"));
        }
        check(&[("token-secret", "0123456789abcdeg")], Err("its token-secret does not match"));
        check(&[("token-secret", "-")], Err("its token-secret does not match"));
        check(&[("token-id", "abcdeg")], Err("its token-id does not match"));
        let expired = "it has expired, or its expiration is not a time";
        check(&[("expiration", "1970-01-01T00:01:39Z")], Err(expired));
        check(&[("expiration", "tomorrow")], Err(expired));
        let unused = "its usage-bootstrap-authentication is not true";
        check(&[("usage-bootstrap-authentication", "-")], Err(unused));
        let other = json::parse(br#"{"type":"Opaque"}"#).unwrap();
        let found = BootstrapToken::parse(TOKEN).unwrap().authenticate(&other, 0);
        assert_eq!(found, Err("the secret is of another type"));
    }
}
