//! Token authenticators, and the stored objects that tokens refer to.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_auth::token::{
    AccountTokens, Authenticated, BOOTSTRAP_NAMESPACE, BootstrapToken, LEGACY_INVALID_SINCE,
    LEGACY_LAST_USED, Objects, StoredKind, StoredObject, TokenList,
};
use pintle_auth::{Error, User};
use pintle_controllers::legacy_tokens::Uses;
use pintle_meta::{GroupVersionResource, object, time};
use pintle_registry::request::Now;
use pintle_registry::{Object, Registry};
use pintle_value::{Str, Value};

use super::external::External;

/// The token authenticators.
pub(crate) struct Tokens {
    /// The tokens of the static file.
    pub(crate) list: TokenList,
    /// Service account tokens.
    pub(crate) accounts: AccountTokens,
    /// The last uses of tokens in secrets.
    pub(crate) uses: Arc<Uses>,
    /// Whether bootstrap tokens are accepted.
    pub(crate) bootstrap: bool,
    /// External tokens; `None` without an external authenticator.
    pub(crate) external: Option<Arc<External>>,
}

impl Tokens {
    /// The audiences of the API.
    pub(crate) fn api_audiences(&self) -> &[String] {
        self.accounts.api_audiences()
    }

    /// Authenticates a token that is for at least one of these audiences. External authenticators
    /// see only tokens that this server's own authenticators refuse.
    pub(super) async fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now: Now,
        registry: &Registry,
    ) -> Result<Authenticated, Error> {
        // This server's own authenticators refused these when they were verified.
        if let Some(external) = &self.external
            && !self.accounts.has_verified(token)
            && let Some(found) = external.cached(token, audiences)
        {
            return Ok(found);
        }
        let mut own = self.own(token, audiences, now, registry);
        // Another server may have just created the account or the object that the token is bound to.
        if matches!(own, Err(Error::Account(_)))
            && registry.is_shared()
            && Box::pin(registry.catch_up()).await.is_ok()
        {
            own = self.own(token, audiences, now, registry);
        }
        let refusal = match own {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        let Some(external) = &self.external else { return Err(refusal) };
        match Box::pin(external.authenticate(token, audiences, now)).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(refusal),
            Err(why) if refusal == Error::Token => Err(why),
            Err(why) => Err(Error::External(format!("{refusal}, {why}"))),
        }
    }

    /// Authenticates a token with this server's own authenticators.
    fn own(
        &self,
        token: &str,
        audiences: &[String],
        now: Now,
        registry: &Registry,
    ) -> Result<Authenticated, Error> {
        // A token of the file or a bootstrap token has no audiences, so it is for the API.
        let for_api_audiences = |user: Arc<User>| {
            let known = self.api_audiences().iter();
            let common: Vec<_> = known.filter(|known| audiences.contains(known)).cloned().collect();
            (!common.is_empty()).then_some(Authenticated::new(user, common))
        };
        if let Some(found) = self.list.user(token).cloned().and_then(for_api_audiences) {
            return Ok(found);
        }
        let stored = Stored { registry, uses: Some(&self.uses) };
        if let Some(user) = self.bootstrapper(token, now, &stored) {
            return for_api_audiences(Arc::new(user)).ok_or(Error::Token);
        }
        let found = self.accounts.authenticate(token, audiences, now.unix_seconds(), &stored)?;
        found.ok_or(Error::Token)
    }

    /// Authenticates a bootstrap token.
    fn bootstrapper(&self, token: &str, now: Now, stored: &Stored<'_>) -> Option<User> {
        let token = BootstrapToken::parse(token).filter(|_| self.bootstrap)?;
        let name = token.secret_name();
        let secret = stored.tree(StoredKind::Secret, BOOTSTRAP_NAMESPACE, &name)?;
        let found = token.authenticate(&secret, now.unix_seconds());
        let refused = |why: &&str| tracing::debug!(secret = name, why, "no bootstrap token");
        found.map(User::authenticated).inspect_err(refused).ok()
    }
}

/// The stored objects that token authenticators read.
pub(crate) struct Stored<'a> {
    pub(crate) registry: &'a Registry,
    /// Records the use of a secret's token; `None` if no token is used.
    pub(crate) uses: Option<&'a Uses>,
}

impl Stored<'_> {
    fn object(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let resource = match kind {
            StoredKind::ServiceAccount => "serviceaccounts",
            StoredKind::Pod => "pods",
            StoredKind::Secret => "secrets",
            StoredKind::Node => "nodes",
        };
        let resource = self.registry.resource(&GroupVersionResource::new("", "v1", resource))?;
        self.registry.peek(&resource, namespace, name)
    }

    /// The object's tree, if it exists. An object that cannot be decoded counts as missing, so its
    /// tokens are invalid.
    pub(crate) fn tree(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<Value> {
        let read = self.object(kind, namespace, name)?.tree();
        read.inspect_err(|why| {
            tracing::error!("cannot read a stored object, so its tokens are invalid: {why}")
        })
        .ok()
    }
}

impl Objects for Stored<'_> {
    fn find(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<StoredObject> {
        let tree = self.tree(kind, namespace, name)?;
        let deleted = time::parse(object::text(&tree, "deletionTimestamp")).ok();
        let is_secret = kind == StoredKind::Secret;
        let token = tree.str_at(&["data", "token"]).filter(|_| is_secret);
        let label = |name| tree.str_at(&["metadata", "labels", name]).unwrap_or_default();
        let secrets = tree.get("secrets").and_then(Value::as_array);
        let secrets = secrets.filter(|_| kind == StoredKind::ServiceAccount).unwrap_or_default();
        Some(StoredObject {
            uid: object::uid(&tree).into(),
            deleted: deleted.map(|micros| micros.div_euclid(1_000_000)),
            token: token.and_then(|token| STANDARD.decode(token).ok()).unwrap_or_default(),
            is_invalidated: is_secret && !label(LEGACY_INVALID_SINCE).is_empty(),
            last_used: if is_secret { label(LEGACY_LAST_USED).into() } else { Str::default() },
            secrets: secrets.iter().filter_map(|one| Some(one.str_at(&["name"])?.into())).collect(),
        })
    }

    fn revision(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<u64> {
        Some(self.object(kind, namespace, name)?.revision.0)
    }

    fn resets(&self) -> u64 {
        self.registry.head().resets()
    }

    fn used(&self, namespace: &str, secret: &str) {
        self.uses.into_iter().for_each(|uses| uses.note(namespace, secret));
    }
}
