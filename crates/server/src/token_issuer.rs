//! Issues service account tokens (`serviceaccounts/token`, TOK-01), and publishes the documents by
//! which other servers verify them (OpenID Connect discovery).

use std::sync::Arc;

use pintle_auth::token::{
    Binding, Claims, EXTENSION_SECONDS, Issuer, PublicKey, Reference, StoredKind,
    WARN_AFTER_SECONDS,
};
use pintle_meta::group::{GroupKind, GroupResource};
use pintle_meta::quote::quote;
use pintle_meta::{Status, field, object, time, uid};
use pintle_registry::Registry;
use pintle_registry::request::Now;
use pintle_value::{Map, Path, Str, Value, json};

use crate::authentication::tokens::Stored;

/// The default lifetime of a token.
const DEFAULT_SECONDS: i64 = 60 * 60;
const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// The path of the published keys.
const KEYS_PATH: &str = "/openid/v1/jwks";

/// The issuer of service account tokens.
pub(crate) struct TokenIssuer {
    pub(crate) issuer: Arc<Issuer>,
    /// The issuer's name.
    pub(crate) name: String,
    /// The longest lifetime.
    pub(crate) max_seconds: Option<u64>,
    /// Whether pod tokens may outlive their stated lifetime.
    pub(crate) extends: bool,
    /// The URL of the published keys, if it is not this server's.
    pub(crate) jwks_uri: Option<String>,
}

/// A request for a token.
pub(crate) struct RequestedToken<'a> {
    pub(crate) namespace: &'a str,
    /// The service account's name.
    pub(crate) name: &'a str,
    pub(crate) registry: &'a Registry,
    /// The audiences of the API.
    pub(crate) api_audiences: &'a [String],
    pub(crate) now: Now,
    /// Sixteen random bytes for the token's ID.
    pub(crate) random: [u8; 16],
}

impl TokenIssuer {
    /// Sets the status of a TokenRequest. Returns warnings.
    pub(crate) fn answer(
        &self,
        asked: &RequestedToken<'_>,
        request: &mut Value,
    ) -> Result<Vec<String>, Status> {
        check_names(asked, request)?;
        let stored = Stored { registry: asked.registry, uses: None };
        let account = stored.tree(StoredKind::ServiceAccount, asked.namespace, asked.name);
        let account = account.ok_or_else(|| not_found("serviceaccounts", asked.name))?;
        let account = reference(&account);
        complete(asked, request, &account)?;
        check(request)?;
        let binding = bind(asked, request)?;
        let mut warnings = Vec::new();
        let mut seconds = expiration(request);
        let max = self.max_seconds.and_then(|max| i64::try_from(max).ok());
        if let Some(max) = max.filter(|max| *max > 0 && seconds > *max) {
            warnings.push(format!(
                "requested expiration of {seconds} seconds shortened to {max} seconds"
            ));
            seconds = max;
            request.object_entry("spec").insert("expirationSeconds", seconds);
        }
        let audiences = texts(request.at(&["spec", "audiences"]));
        let is_extended = self.extends
            && matches!(binding, Binding::Pod { .. })
            && seconds == WARN_AFTER_SECONDS
            && audiences.iter().all(|audience| asked.api_audiences.contains(audience));
        let now = asked.now.unix_seconds();
        // As in upstream, the longest lifetime that may be requested does not limit an extended
        // one.
        let life = if is_extended { EXTENSION_SECONDS } else { seconds };
        let claims = Claims {
            issuer: Str::default(), // the issuer sets its name
            namespace: asked.namespace.into(),
            account,
            audiences,
            binding,
            id: uid::format(asked.random).into(),
            not_before: Some(now),
            issued: Some(now),
            expires: Some(now.saturating_add(life)),
            warn_after: is_extended.then(|| now.saturating_add(seconds)),
        };
        let token = self
            .issuer
            .sign(&claims)
            .map_err(|why| Status::internal(format_args!("failed to generate token: {why}")))?;
        let mut status = Map::new();
        status.insert("token", token);
        let ends = now.saturating_add(seconds).saturating_mul(1_000_000);
        status.insert("expirationTimestamp", time::format(ends));
        request.make_object().insert("status", status);
        Ok(warnings)
    }

    /// The OpenID Connect configuration; `None` unless the issuer is an `https://` URL without
    /// query and fragment. `address` is this server's.
    pub(crate) fn configuration(&self, keys: &[PublicKey], address: &str) -> Option<String> {
        let is_url = self.name.starts_with("https://") && !self.name.contains(['?', '#']);
        if !is_url {
            return None;
        }
        let mut algorithms: Vec<_> = keys.iter().map(PublicKey::algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let list = |items: &[&str]| {
            let items: Vec<Value> = items.iter().map(|item| Value::from(*item)).collect();
            json::to_string(&Value::from(items))
        };
        let text = |text: &str| json::to_string(&Value::from(text));
        let here = || format!("https://{address}{KEYS_PATH}");
        let uri = self.jwks_uri.clone().unwrap_or_else(here);
        // Formatted by hand, as the order of members is upstream's.
        Some(format!(
            "{{\"issuer\":{},\"jwks_uri\":{},\"response_types_supported\":[\"id_token\"],\
             \"subject_types_supported\":[\"public\"],\"id_token_signing_alg_values_supported\":{}}}",
            text(&self.name),
            text(&uri),
            list(&algorithms)
        ))
    }
}

/// The keys that verify tokens, as a JSON Web Key Set.
pub(crate) fn key_set(keys: &[PublicKey]) -> String {
    let keys: Vec<Value> = keys.iter().map(|key| Value::Object(key.web_key())).collect();
    json::to_string(&Value::from([("keys", keys)]))
}

/// Checks that the request's name and namespace are those of the URL.
fn check_names(asked: &RequestedToken<'_>, request: &Value) -> Result<(), Status> {
    let checks = [
        ("name", asked.name, object::name(request)),
        ("namespace", asked.namespace, object::namespace(request)),
    ];
    for (member, wanted, given) in checks {
        if !given.is_empty() && given != wanted {
            let path = Path::new("metadata").field(member);
            let why = format!("must match the service account {member} if specified");
            return Err(invalid(asked.name, &[field::Error::invalid(&path, &given.into(), why)]));
        }
    }
    Ok(())
}

/// Completes the metadata and the audiences; 409 if the request has the UID of another service
/// account.
fn complete(
    asked: &RequestedToken<'_>,
    request: &mut Value,
    account: &Reference,
) -> Result<(), Status> {
    let given = Str::from(object::uid(request));
    if !given.is_empty() && given != account.uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({})",
            account.uid
        );
        return Err(Status::conflict(&GroupResource::new(GROUP, KIND), asked.name, &why));
    }
    object::set_text(request, "name", asked.name);
    object::set_text(request, "namespace", asked.namespace);
    object::set_text(request, "uid", account.uid.clone());
    object::set_text(request, "creationTimestamp", time::format(asked.now.unix_micros));
    request.make_object().remove("status");
    let spec = request.object_entry("spec");
    if spec.get("audiences").and_then(Value::as_array).unwrap_or_default().is_empty() {
        spec.insert("audiences", asked.api_audiences.to_vec());
    }
    Ok(())
}

/// Sets the lifetime that a request does not name.
pub(crate) fn set_defaults(request: &mut Value) {
    let spec = request.object_entry("spec");
    if spec.get("expirationSeconds").is_none_or(Value::is_null) {
        spec.insert("expirationSeconds", DEFAULT_SECONDS);
    }
}

/// Validates a request (upstream: `ValidateTokenRequest`).
fn check(request: &Value) -> Result<(), Status> {
    const SECONDS_MIN: i64 = 10 * 60;
    const SECONDS_MAX: i64 = 1 << 32;
    let path = Path::new("spec").field("expirationSeconds");
    let seconds = expiration(request);
    let why = match seconds {
        ..SECONDS_MIN => "may not specify a duration less than 10 minutes",
        SECONDS_MIN..=SECONDS_MAX => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    // Upstream's error names no object.
    Err(invalid("", &[field::Error::invalid(&path, &Value::Int(seconds), why)]))
}

fn expiration(request: &Value) -> i64 {
    request.at(&["spec", "expirationSeconds"]).and_then(Value::as_int).unwrap_or(0)
}

fn invalid(name: &str, errors: &[field::Error]) -> Status {
    Status::invalid(&GroupKind::new(GROUP, KIND), name, errors)
}

/// The binding to the object whose deletion invalidates the token.
fn bind(asked: &RequestedToken<'_>, request: &Value) -> Result<Binding, Status> {
    let wanted = request.at(&["spec", "boundObjectRef"]).filter(|wanted| **wanted != Value::Null);
    let Some(wanted) = wanted else { return Ok(Binding::Account) };
    let text = |member| wanted.str_at(&[member]).unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let (stored_kind, resource, namespace) = match (group, kind) {
        ("", "Pod") => (StoredKind::Pod, "pods", asked.namespace),
        ("", "Secret") => (StoredKind::Secret, "secrets", asked.namespace),
        ("", "Node") => (StoredKind::Node, "nodes", ""),
        _ => {
            let version = version.rsplit('/').next().unwrap_or_default();
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let stored = Stored { registry: asked.registry, uses: None };
    let tree =
        stored.tree(stored_kind, namespace, name).ok_or_else(|| not_found(resource, name))?;
    let found = reference(&tree);
    let binding = match stored_kind {
        StoredKind::Secret | StoredKind::ServiceAccount => Binding::Secret(found.clone()),
        StoredKind::Node => Binding::Node(found.clone()),
        StoredKind::Pod => {
            if tree.str_at(&["spec", "serviceAccountName"]) != Some(asked.name) {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different \
                     serviceaccount name.",
                    quote(asked.name)
                )));
            }
            let node = tree.str_at(&["spec", "nodeName"]).filter(|name| !name.is_empty());
            let node = node.map(|name| {
                let unknown = || Reference { name: name.into(), uid: Str::default() };
                stored.tree(StoredKind::Node, "", name).as_ref().map_or_else(unknown, reference)
            });
            Binding::Pod { pod: found.clone(), node }
        }
    };
    let given = text("uid");
    if !given.is_empty() && given != found.uid {
        let why = format!(
            "the UID in the bound object reference ({given}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(Status::conflict(&GroupResource::new(group, kind), name, &why));
    }
    Ok(binding)
}

fn reference(tree: &Value) -> Reference {
    Reference { name: object::name(tree).into(), uid: object::uid(tree).into() }
}

fn not_found(resource: &str, name: &str) -> Status {
    Status::not_found(&GroupResource::new("", resource), name)
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
