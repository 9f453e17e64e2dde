//! The claims of service account tokens, as upstream: `pkg/serviceaccount/claims.go` for bound
//! tokens, which expire, and `legacy.go` for those in secrets.

use std::time::Duration;

use pintle_value::{Map, Str, Value, json};

/// The lifetime that projected volumes request. A token for a pod with exactly this lifetime is
/// valid for [`EXTENSION_SECONDS`] instead, and stale after the requested lifetime.
pub const WARN_AFTER_SECONDS: i64 = 60 * 60 + 7;
/// See [`WARN_AFTER_SECONDS`].
pub const EXTENSION_SECONDS: i64 = 365 * 24 * 60 * 60;
/// The tolerated difference of clocks.
pub(super) const LEEWAY: Duration = Duration::from_secs(60);
/// The issuer of tokens in secrets.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// An object that a token names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    pub name: Str,
    pub uid: Str,
}

/// The object whose deletion invalidates a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Only the service account.
    #[default]
    Account,
    /// A pod, with its node if it is scheduled.
    Pod {
        /// The pod.
        pod: Reference,
        /// The pod's node. The UID is empty if the node does not exist.
        node: Option<Reference>,
    },
    /// A secret.
    Secret(Reference),
    /// A node.
    Node(Reference),
}

/// The claims of a bound token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    pub issuer: Str,
    pub namespace: Str,
    pub account: Reference,
    pub audiences: Vec<String>,
    pub binding: Binding,
    /// The claim `jti`; `""` if absent.
    pub id: Str,
    /// The claims `nbf`, `exp` and `iat`, in seconds since 1970.
    pub not_before: Option<i64>,
    pub expires: Option<i64>,
    pub issued: Option<i64>,
    /// The second from which on the token is stale.
    pub warn_after: Option<i64>,
}

impl Claims {
    /// Encodes the claims as the JSON that is signed.
    pub(super) fn write(&self) -> String {
        let mut bound = Map::new();
        bound.insert("namespace", self.namespace.clone());
        bound.insert("serviceaccount", self.account.write());
        match &self.binding {
            Binding::Account => {}
            Binding::Pod { pod, node } => {
                bound.insert("pod", pod.write());
                if let Some(node) = node {
                    bound.insert("node", node.write());
                }
            }
            Binding::Secret(secret) => drop(bound.insert("secret", secret.write())),
            Binding::Node(node) => drop(bound.insert("node", node.write())),
        }
        if let Some(warn_after) = self.warn_after {
            bound.insert("warnafter", warn_after);
        }
        let mut claims = Map::new();
        claims.insert("iss", self.issuer.clone());
        let name = pintle_meta::user::service_account(&self.namespace, &self.account.name);
        claims.insert("sub", name);
        claims.insert("aud", self.audiences.clone());
        if !self.id.is_empty() {
            claims.insert("jti", self.id.clone());
        }
        let times = [("exp", self.expires), ("nbf", self.not_before), ("iat", self.issued)];
        for (name, second) in times {
            if let Some(second) = second {
                claims.insert(name, second);
            }
        }
        claims.insert("kubernetes.io", bound);
        json::to_string(&Value::Object(claims))
    }

    /// Decodes claims; `None` if they name no service account.
    pub(super) fn read(claims: &Value) -> Option<Self> {
        let bound = claims.get("kubernetes.io")?;
        let reference = |member| bound.get(member).map(Reference::read);
        let binding = match (reference("pod"), reference("secret"), reference("node")) {
            (Some(pod), _, node) => Binding::Pod { pod, node },
            (None, Some(secret), _) => Binding::Secret(secret),
            (None, None, Some(node)) => Binding::Node(node),
            (None, None, None) => Binding::Account,
        };
        Some(Self {
            issuer: text(claims, "iss"),
            namespace: text(bound, "namespace"),
            account: reference("serviceaccount")?,
            audiences: audiences(claims),
            binding,
            id: text(claims, "jti"),
            not_before: seconds(claims, "nbf"),
            expires: seconds(claims, "exp"),
            issued: seconds(claims, "iat"),
            warn_after: seconds(bound, "warnafter"),
        })
    }
}

impl Reference {
    fn write(&self) -> Map {
        let mut reference = Map::new();
        for (member, text) in [("name", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                reference.insert(member, text.clone());
            }
        }
        reference
    }

    fn read(reference: &Value) -> Self {
        Self { name: text(reference, "name"), uid: text(reference, "uid") }
    }
}

/// The claims of a legacy token, which is in a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LegacyClaims {
    pub(super) namespace: Str,
    pub(super) account: Reference,
    pub(super) secret: Str,
    subject: Str,
}

impl LegacyClaims {
    pub(super) fn new(namespace: &str, account: Reference, secret: &str) -> Self {
        let subject = pintle_meta::user::service_account(namespace, &account.name).into();
        Self { namespace: namespace.into(), account, secret: secret.into(), subject }
    }

    pub(super) fn write(&self) -> String {
        let claims = [
            ("iss", LEGACY_ISSUER),
            ("kubernetes.io/serviceaccount/namespace", &self.namespace),
            ("kubernetes.io/serviceaccount/secret.name", &self.secret),
            ("kubernetes.io/serviceaccount/service-account.name", &self.account.name),
            ("kubernetes.io/serviceaccount/service-account.uid", &self.account.uid),
            ("sub", &self.subject),
        ];
        json::to_string(&Value::from(claims))
    }

    /// Decodes claims; the error names a missing claim, or `sub` if it names another account.
    pub(super) fn read(claims: &Value) -> Result<Self, String> {
        let need = |member: &str, name: &str| {
            let found = text(claims, member);
            if found.is_empty() { Err(format!("{name} claim is missing")) } else { Ok(found) }
        };
        let own = |part: &str, name| need(&format!("kubernetes.io/serviceaccount/{part}"), name);
        let subject = need("sub", "sub")?;
        let namespace = own("namespace", "namespace")?;
        let secret = own("secret.name", "secretName")?;
        let account = Reference {
            name: own("service-account.name", "serviceAccountName")?,
            uid: own("service-account.uid", "serviceAccountUID")?,
        };
        let named = pintle_meta::user::split_service_account(&subject);
        if named != Some((&*namespace, &*account.name)) {
            return Err("sub claim is invalid".to_owned());
        }
        Ok(Self { namespace, account, secret, subject })
    }
}

pub(super) fn text(object: &Value, member: &str) -> Str {
    object.str_at(&[member]).unwrap_or_default().into()
}

/// The claim `aud`, a string or a list of strings.
fn audiences(claims: &Value) -> Vec<String> {
    match claims.get("aud") {
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::String(one)) => vec![one.to_string()],
        _ => Vec::new(),
    }
}

/// A time in seconds, without its fraction.
fn seconds(object: &Value, member: &str) -> Option<i64> {
    match object.get(member)? {
        Value::Int(seconds) => Some(*seconds),
        Value::Float(seconds) => Some(*seconds as i64),
        _ => None,
    }
}
