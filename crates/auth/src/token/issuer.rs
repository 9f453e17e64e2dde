//! Service account tokens: signing and validation (TOK-01, TOK-02).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::{Mutex, RwLock};
use pintle_meta::quote::quote;
use pintle_meta::time;
use pintle_meta::user::{service_account, service_account_groups};
use pintle_value::{Str, Value, json};

use super::claims::{LEEWAY, LEGACY_ISSUER, LegacyClaims, text};
use super::{Authenticated, Binding, Claims, Measures, PublicKey, Reference, SigningKey};
use crate::{Error, User};

/// The label by which kube-controller-manager invalidates the token in a secret that has not been
/// used for long.
pub const LEGACY_INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// The label with the day on which the token in a secret was last used.
pub const LEGACY_LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The size limit of a token.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The size of the cache of verified tokens. A full cache is cleared.
const VERIFIED_MAX: usize = 4096;

/// The kinds of objects that tokens can be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    ServiceAccount,
    Pod,
    Secret,
    Node,
}

/// The members of a stored object that validation reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredObject {
    /// The object's UID.
    pub uid: Str,
    /// The deletion timestamp, in seconds since 1970.
    pub deleted: Option<i64>,
    /// The token in a secret.
    pub token: Vec<u8>,
    /// Whether a secret has the label [`LEGACY_INVALID_SINCE`].
    pub is_invalidated: bool,
    /// The value of a secret's label [`LEGACY_LAST_USED`].
    pub last_used: Str,
    /// The secrets in a service account's `secrets`.
    pub secrets: Vec<Str>,
}

/// Looks up the current state of objects.
pub trait Objects {
    /// Returns an object, if it exists. Nodes have no namespace.
    fn find(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<StoredObject>;

    /// Returns the revision of an object's last change, if the object exists. It must cost little:
    /// validation compares it before it reads the object.
    fn revision(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<u64>;

    /// Returns how often the history of revisions was lost: a revision may occur again after that.
    fn resets(&self) -> u64;

    /// Records that the token in a secret was used today.
    fn used(&self, namespace: &str, secret: &str);
}

/// Signs tokens.
#[derive(Debug)]
pub struct Issuer {
    key: SigningKey,
    name: Str,
    header: String,
}

impl Issuer {
    /// An issuer with a key and the name for the claim `iss`.
    pub fn new(key: SigningKey, name: &str) -> Self {
        let (algorithm, id) = (key.public().algorithm(), key.public().id());
        let header = json::to_string(&Value::from([("alg", algorithm), ("kid", id)]));
        Self { key, name: name.into(), header: URL_SAFE_NO_PAD.encode(header) }
    }

    /// Signs claims in this issuer's name.
    pub fn sign(&self, claims: &Claims) -> Result<String, Error> {
        self.sign_text(&Claims { issuer: self.name.clone(), ..claims.clone() }.write())
    }

    /// Signs a legacy token, which does not expire, for a secret.
    pub fn sign_for_secret(
        &self,
        namespace: &str,
        account: Reference,
        secret: &str,
    ) -> Result<String, Error> {
        self.sign_text(&LegacyClaims::new(namespace, account, secret).write())
    }

    fn sign_text(&self, claims: &str) -> Result<String, Error> {
        let mut token = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(claims));
        let signature = self.key.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

/// Authenticates service account tokens.
#[derive(Debug)]
pub struct AccountTokens {
    keys: Vec<PublicKey>,
    issuers: Vec<String>,
    /// The audiences of the API server itself.
    audiences: Vec<String>,
    /// Tokens with a verified signature. Their claims never change; the objects that they are bound
    /// to may.
    verified: RwLock<HashMap<Str, Arc<Verified>>>,
    measures: Arc<Measures>,
}

/// The claims of a token with a verified signature, and its user.
#[derive(Debug)]
enum Verified {
    Bound {
        claims: Box<Claims>,
        user: Arc<User>,
        /// The revisions of the objects of the token when they were last found valid, and none of
        /// them was being deleted. While they are the same, the objects are not read again: the pod
        /// of a token may be large.
        valid_at: Mutex<Option<Revisions>>,
    },
    Legacy {
        claims: LegacyClaims,
        user: Arc<User>,
    },
}

/// How often the history was lost, and the revisions of a token's service account and of the object
/// that the token is bound to.
type Revisions = (u64, [Option<u64>; 2]);

impl AccountTokens {
    /// Accepts tokens that one of `keys` signed for one of `issuers`. `audiences` are those of the
    /// API server.
    pub fn new(keys: Vec<PublicKey>, issuers: Vec<String>, audiences: Vec<String>) -> Self {
        let (verified, measures) = (RwLock::default(), Arc::default());
        Self { keys, issuers, audiences, verified, measures }
    }

    /// The measures of tokens.
    pub fn measures(&self) -> &Measures {
        &self.measures
    }

    /// The audiences of the API server itself.
    pub fn api_audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The keys that verify tokens.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Returns the user of a valid token; `None` if the token does not claim to be a service
    /// account's. The token must be for at least one of `audiences`, unless the API server has no
    /// audiences.
    pub fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now_seconds: i64,
        objects: &dyn Objects,
    ) -> Result<Option<Authenticated>, Error> {
        let Some(verified) = self.verified(token)? else { return Ok(None) };
        let (own, user) = match &*verified {
            Verified::Bound { claims, user, .. } if !claims.audiences.is_empty() => {
                (&claims.audiences, user)
            }
            Verified::Bound { user, .. } | Verified::Legacy { user, .. } => (&self.audiences, user),
        };
        let common = common(own, audiences);
        if common.is_empty() && !self.audiences.is_empty() {
            return Err(Error::Account(format!(
                "token audiences {} is invalid for the target audiences {}",
                crate::rbac::quoted_list(own),
                crate::rbac::quoted_list(audiences)
            )));
        }
        let validated = match &*verified {
            Verified::Bound { claims, valid_at, .. } => {
                self.check(claims, valid_at, now_seconds, objects)
            }
            Verified::Legacy { claims, .. } => {
                self.check_legacy(claims, token, now_seconds, objects).map(|()| None)
            }
        };
        let stale_seconds = validated.map_err(Error::Account)?;
        Ok(Some(Authenticated { user: user.clone(), audiences: common, stale_seconds }))
    }

    /// Validates a token's claims. Returns for how many seconds the token has been stale.
    fn check(
        &self,
        claims: &Claims,
        valid_at: &Mutex<Option<Revisions>>,
        now: i64,
        objects: &dyn Objects,
    ) -> Result<Option<i64>, String> {
        check_time(claims, now)?;
        // Read before the objects: a change in between is noticed at the next request.
        let revisions = revisions(claims, objects);
        if *valid_at.lock() != Some(revisions) {
            let are_lasting = check_objects(claims, now, objects)?;
            *valid_at.lock() = are_lasting.then_some(revisions);
        }
        // As upstream, this counts only tokens with an extended lifetime.
        let Some(second) = claims.warn_after.filter(|second| *second != 0) else { return Ok(None) };
        let stale_seconds = (now > second).then(|| now - second);
        let count =
            if stale_seconds.is_some() { &self.measures.stale } else { &self.measures.valid };
        count.add(1);
        Ok(stale_seconds)
    }

    fn check_legacy(
        &self,
        claims: &LegacyClaims,
        token: &str,
        now: i64,
        objects: &dyn Objects,
    ) -> Result<(), String> {
        let (secret, account) = check_legacy(claims, token, objects)?;
        let LegacyClaims { namespace, secret: name, .. } = claims;
        if !is_recorded(&secret.last_used, now) {
            objects.used(namespace, name);
        }
        if secret.is_invalidated {
            self.measures.legacy_invalidated.add(1);
            return Err(format!(
                "the token in secret {namespace}/{name} for service account {namespace}/{} has been \
                 marked invalid. Use tokens from the TokenRequest API or manually created \
                 secret-based tokens, or remove the '{LEGACY_INVALID_SINCE}' label from the secret to \
                 temporarily allow use of this token",
                claims.account.name
            ));
        }
        let is_automatic = account.secrets.contains(name);
        let counter = if is_automatic {
            &self.measures.legacy_automatic
        } else {
            &self.measures.legacy_manual
        };
        counter.add(1);
        self.measures.legacy.add(1);
        Ok(())
    }

    /// Whether a token's signature was verified some time ago.
    pub fn has_verified(&self, token: &str) -> bool {
        self.verified.read().contains_key(token)
    }

    /// Verifies a token's signature, or takes the result from the cache.
    fn verified(&self, token: &str) -> Result<Option<Arc<Verified>>, Error> {
        let began = Instant::now();
        if let Some(verified) = self.verified.read().get(token) {
            let verified = verified.clone();
            self.measures.hits.took(began.elapsed());
            return Ok(Some(verified));
        }
        self.measures.verified(|| self.verify(token))
    }

    fn verify(&self, token: &str) -> Result<Option<Arc<Verified>>, Error> {
        let Some((message, parts)) = split(token) else { return Ok(None) };
        let [header, claims, signature] = parts;
        let read = |bytes: &[u8]| json::parse(bytes).ok();
        let (Some(header), Some(claims)) = (read(&header), read(&claims)) else { return Ok(None) };
        let issuer = text(&claims, "iss");
        let is_legacy = issuer == LEGACY_ISSUER;
        if !is_legacy && !self.issuers.iter().any(|known| *known == *issuer) {
            return Ok(None);
        }
        let (id, algorithm) = (text(&header, "kid"), text(&header, "alg"));
        let mut keys = self.keys.iter().filter(|key| id.is_empty() || key.id() == id).peekable();
        if keys.peek().is_none() {
            return Err(Error::Account("invalid signature, no keys found".to_owned()));
        }
        if !keys.any(|key| key.verifies(&algorithm, message.as_bytes(), &signature)) {
            let why = "go-jose/go-jose: error in cryptographic primitive"; // upstream's text
            return Err(Error::Account(why.to_owned()));
        }
        let verified = if is_legacy {
            let claims = LegacyClaims::read(&claims).map_err(Error::Account)?;
            let user = user(&claims.namespace, &claims.account, Vec::new());
            Verified::Legacy { claims, user }
        } else {
            let Some(claims) = Claims::read(&claims) else { return Ok(None) };
            let user = user(&claims.namespace, &claims.account, extra(&claims));
            Verified::Bound { claims: Box::new(claims), user, valid_at: Mutex::default() }
        };
        let verified = Arc::new(verified);
        let mut cache = self.verified.write();
        if cache.len() >= VERIFIED_MAX {
            cache.clear();
        }
        cache.insert(token.into(), verified.clone());
        Ok(Some(verified))
    }
}

/// Splits a token into the text that is signed and its three decoded parts.
fn split(token: &str) -> Option<(&str, [Vec<u8>; 3])> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (message, signature) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    Some((message, [decode(header)?, decode(claims)?, decode(signature)?]))
}

fn user(namespace: &str, account: &Reference, extra: Vec<(String, Vec<String>)>) -> Arc<User> {
    let user = User {
        name: service_account(namespace, &account.name),
        uid: account.uid.to_string(),
        groups: service_account_groups(namespace),
        extra,
    };
    Arc::new(user.authenticated())
}

/// The user's `extra` from the token's claims, sorted by key.
fn extra(claims: &Claims) -> Vec<(String, Vec<String>)> {
    let mut extra = Vec::new();
    let mut add = |key: &str, value: String| {
        extra.push((format!("authentication.kubernetes.io/{key}"), vec![value]));
    };
    if !claims.id.is_empty() {
        add("credential-id", format!("JTI={}", claims.id));
    }
    let (pod, node) = match &claims.binding {
        Binding::Pod { pod, node } => (Some(pod), node.as_ref()),
        Binding::Node(node) => (None, Some(node)),
        Binding::Account | Binding::Secret(_) => (None, None),
    };
    if let Some(node) = node {
        add("node-name", node.name.to_string());
        if !node.uid.is_empty() {
            add("node-uid", node.uid.to_string());
        }
    }
    if let Some(pod) = pod {
        add("pod-name", pod.name.to_string());
        add("pod-uid", pod.uid.to_string());
    }
    extra
}

/// Checks that a token is valid at the current time.
fn check_time(claims: &Claims, now: i64) -> Result<(), String> {
    let leeway = leeway();
    if claims.not_before.is_some_and(|second| now + leeway < second) {
        return Err("service account token is not valid yet".to_owned());
    }
    if claims.expires.is_some_and(|second| now - leeway > second) {
        return Err("service account token has expired".to_owned());
    }
    if claims.issued.is_some_and(|second| now + leeway < second) {
        return Err("service account token is issued in the future".to_owned());
    }
    Ok(())
}

fn leeway() -> i64 {
    i64::try_from(LEEWAY.as_secs()).unwrap_or(0)
}

/// The object that a token is bound to besides its account: its kind, its namespace, its reference,
/// and upstream's words for it.
fn bound(claims: &Claims) -> Option<(StoredKind, &str, &Reference, [&'static str; 2])> {
    let namespace = &*claims.namespace;
    match &claims.binding {
        Binding::Account => None,
        Binding::Pod { pod, .. } => Some((StoredKind::Pod, namespace, pod, ["pod", "pod ref"])),
        Binding::Secret(secret) => {
            Some((StoredKind::Secret, namespace, secret, ["secret", "secret ref"]))
        }
        Binding::Node(node) => Some((StoredKind::Node, "", node, ["node", "node ref"])),
    }
}

fn revisions(claims: &Claims, objects: &dyn Objects) -> Revisions {
    let account = (StoredKind::ServiceAccount, &*claims.namespace, &claims.account);
    let bound = bound(claims).map(|(kind, namespace, reference, _)| (kind, namespace, reference));
    let of_objects = [Some(account), bound].map(|object| {
        let (kind, namespace, reference) = object?;
        objects.revision(kind, namespace, &reference.name)
    });
    (objects.resets(), of_objects)
}

/// Checks that the account and the object that a token is bound to exist. Returns whether the result
/// lasts until one of them changes: a deletion in progress invalidates the token some time later.
fn check_objects(claims: &Claims, now: i64, objects: &dyn Objects) -> Result<bool, String> {
    let (namespace, account) = (&claims.namespace, &claims.account);
    let gone = |object: &StoredObject| object.deleted.is_some_and(|at| at < now - leeway());
    let found = objects.find(StoredKind::ServiceAccount, namespace, &account.name);
    let found =
        found.ok_or_else(|| format!("serviceaccounts {} not found", quote(&account.name)))?;
    if found.uid != account.uid {
        let (found, claimed) = (&found.uid, &account.uid);
        return Err(format!("service account UID ({found}) does not match claim ({claimed})"));
    }
    if gone(&found) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    let is_lasting = found.deleted.is_none();
    let Some((kind, namespace, reference, [title, what])) = bound(claims) else {
        return Ok(is_lasting);
    };
    let invalidated = || "service account token has been invalidated".to_owned();
    let found = objects.find(kind, namespace, &reference.name).ok_or_else(invalidated)?;
    if found.uid != reference.uid {
        let (found, claimed) = (&found.uid, &reference.uid);
        return Err(format!(
            "{title} UID ({found}) does not match service account {what} claim ({claimed})"
        ));
    }
    if gone(&found) { Err(invalidated()) } else { Ok(is_lasting && found.deleted.is_none()) }
}

/// Whether a secret's label has today or, because servers' clocks differ, tomorrow as the day of
/// the last use.
fn is_recorded(last_used: &str, now_seconds: i64) -> bool {
    const DAY: i64 = 24 * 60 * 60;
    [now_seconds, now_seconds + DAY].into_iter().any(|second| last_used == time::day(second))
}

/// Returns the secret and the account of a legacy token, if it is still the token in its secret.
fn check_legacy(
    claims: &LegacyClaims,
    token: &str,
    objects: &dyn Objects,
) -> Result<(StoredObject, StoredObject), String> {
    let LegacyClaims { namespace, account, secret, .. } = claims;
    let invalidated = || "Token has been invalidated".to_owned();
    let secret = objects.find(StoredKind::Secret, namespace, secret).ok_or_else(invalidated)?;
    if secret.deleted.is_some() {
        return Err(invalidated());
    }
    if secret.token != token.as_bytes() {
        return Err("Token does not match server's copy".to_owned());
    }
    let found = objects.find(StoredKind::ServiceAccount, namespace, &account.name);
    let found =
        found.ok_or_else(|| format!("serviceaccounts {} not found", quote(&account.name)))?;
    if found.deleted.is_some() {
        return Err(format!("ServiceAccount {namespace}/{} has been deleted", account.name));
    }
    if found.uid != account.uid {
        let (found, claimed) = (&found.uid, &account.uid);
        return Err(format!("ServiceAccount UID ({found}) does not match claim ({claimed})"));
    }
    Ok((secret, found))
}

/// The audiences of a token that are among the requested ones.
fn common(own: &[String], requested: &[String]) -> Vec<String> {
    /// Fewer are compared one by one, which needs no memory.
    const FEW: usize = 16;
    if requested.len() <= FEW {
        return own.iter().filter(|audience| requested.contains(audience)).cloned().collect();
    }
    let requested: HashSet<&String> = requested.iter().collect();
    own.iter().filter(|audience| requested.contains(audience)).cloned().collect()
}
