//! Secrets with service account tokens: filled when a user creates one, deleted with their account.
//!
//! A queued name is a secret (`namespace/name`), a deleted secret with its account
//! (`namespace/name/account`), or a namespace with deleted accounts (`namespace/`).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::BoxFuture;
use pintle_auth::token::{Issuer, Reference};
use pintle_meta::{Status, object};
use pintle_registry::request::{DeleteOptions, WriteOptions, granted};
use pintle_registry::{Object, Resource};
use pintle_store::Kind;
use pintle_value::{Str, Value};

use crate::pace::Pace;
use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, body, target, until};

// Upstream's controller signs with a key of the manager, and therefore writes as the manager.
const USER: &str = "system:kube-controller-manager";
const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Fills the secrets until shutdown, with the issuer's tokens and the root certificates as PEM.
pub async fn run(
    environment: Environment,
    issuer: Arc<Issuer>,
    ca_pem: Str,
    shutdown: impl Future<Output = ()>,
) {
    let resources = environment.resource("", "v1", "secrets");
    let resources = resources.zip(environment.resource("", "v1", "serviceaccounts"));
    let Some((secrets, accounts)) = resources else { return };
    let environment = &environment;
    let ca = BASE64.encode(ca_pem);
    let secrets = TokenSecrets { environment, issuer, ca, secrets, accounts };
    until(shutdown, work(environment, &secrets)).await;
}

struct TokenSecrets<'e> {
    environment: &'e Environment,
    issuer: Arc<Issuer>,
    /// The root certificates, encoded as in a secret.
    ca: String,
    secrets: Arc<Resource>,
    accounts: Arc<Resource>,
}

impl Reconciler for TokenSecrets<'_> {
    fn purpose(&self) -> &'static str {
        "update a service account token secret"
    }

    fn queue(&self) -> &'static str {
        "serviceaccount_tokens_service"
    }

    fn sources(&self) -> Vec<Source> {
        let selector = format!("type={TYPE}");
        vec![
            Source::new(&self.secrets, secret).with_fields(selector),
            Source::new(&self.accounts, deleted_account),
        ]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        let mut parts = name.splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        let (namespace, secret, account) = (part(), part(), part());
        if secret.is_empty() {
            Box::pin(self.update_all(namespace))
        } else if account.is_empty() {
            Box::pin(self.update(namespace, secret))
        } else {
            Box::pin(self.remove_reference(namespace, secret, account))
        }
    }
}

fn secret(secret: &Object) -> Option<Str> {
    if secret.kind() != Kind::Deleted {
        return itself(secret);
    }
    // The account of an unreadable secret is unknown: the reference to the secret stays.
    let tree = secret.tree().ok()?;
    Some(format!("{}/{}", secret.item, annotation(&tree, ACCOUNT_NAME)).into())
}

/// Enqueues a namespace, so that its secrets are read once for all accounts that are deleted.
fn deleted_account(account: &Object) -> Option<Str> {
    let name = || format!("{}/", account.namespace()).into();
    (account.kind() == Kind::Deleted).then(name)
}

fn annotation<'v>(object: &'v Value, name: &str) -> &'v str {
    object.str_at(&["metadata", "annotations", name]).unwrap_or_default()
}

impl TokenSecrets<'_> {
    async fn update_all(&self, namespace: &str) -> Result<Progress, Status> {
        let fields = self.secrets.strategy.fields();
        let at = fields.iter().position(|field| field.label == "type");
        let mut pace = Pace::default();
        for secret in self.environment.registry.objects_in(&self.secrets, namespace) {
            pace.step(secret.size()).await;
            // The index is read out of a secret once, so that most secrets are not decoded.
            let index = secret.indexed(fields)?;
            if at.and_then(|at| index.fields.get(at)).is_some_and(|kind| kind == TYPE) {
                self.update(namespace, secret.name()).await?;
            }
        }
        Ok(Progress::Done)
    }

    /// Fills a secret, or deletes it if its account does not exist.
    async fn update(&self, namespace: &str, name: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let Some(stored) = registry.peek(&self.secrets, namespace, name) else {
            return Ok(Progress::Done);
        };
        let mut secret = stored.tree()?;
        // The field selector admits unreadable secrets, too, so the type is checked here.
        if secret.str_at(&["type"]) != Some(TYPE) {
            return Ok(Progress::Done);
        }
        let account = registry.peek(&self.accounts, namespace, annotation(&secret, ACCOUNT_NAME));
        let account = account.map(|account| account.tree()).transpose()?;
        let uid = annotation(&secret, ACCOUNT_UID);
        let account = account.filter(|account| uid.is_empty() || object::uid(account) == uid);
        let Some(account) = account else { return self.delete(namespace, &secret).await };
        if object::is_terminating(&secret) || !self.fill(&mut secret, &account)? {
            return Ok(Progress::Done);
        }
        let one = target(&self.secrets, namespace, name, "");
        let (body, options) = (body(&secret), WriteOptions::default());
        let context = self.environment.context(USER);
        registry.update(&one, &body, &options, &context, &granted).await?;
        Ok(Progress::Done)
    }

    /// Adds the missing data to a secret; returns whether any was missing.
    fn fill(&self, secret: &mut Value, account: &Value) -> Result<bool, Status> {
        let (namespace, name) =
            (object::namespace(secret).to_owned(), object::name(secret).to_owned());
        let holds = |member: &str| secret.str_at(&["data", member]).unwrap_or_default();
        let needs_ca = !self.ca.is_empty() && holds("ca.crt") != self.ca;
        let needs_namespace = holds("namespace").is_empty();
        let needs_token = holds("token").is_empty();
        if !needs_ca && !needs_namespace && !needs_token {
            return Ok(false);
        }
        let account =
            Reference { name: object::name(account).into(), uid: object::uid(account).into() };
        let data = secret.object_entry("data");
        if needs_ca {
            data.insert("ca.crt", self.ca.clone());
        }
        if needs_namespace {
            data.insert("namespace", BASE64.encode(&namespace));
        }
        if needs_token {
            let token = self.issuer.sign_for_secret(&namespace, account.clone(), &name);
            let token = token.map_err(Status::internal)?;
            data.insert("token", BASE64.encode(token));
        }
        let annotations = object::metadata_mut(secret).entry_object("annotations");
        annotations.insert(ACCOUNT_NAME, account.name);
        annotations.insert(ACCOUNT_UID, account.uid);
        Ok(true)
    }

    async fn delete(&self, namespace: &str, secret: &Value) -> Result<Progress, Status> {
        let one = target(&self.secrets, namespace, object::name(secret), "");
        let uid = Some(object::uid(secret).into());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        let context = self.environment.context(USER);
        match self.environment.registry.delete(&one, &options, &context).await {
            Err(status) if !matches!(status.code, 404 | 409) => Err(status),
            Ok(_) | Err(_) => Ok(Progress::Done),
        }
    }

    /// Removes a deleted secret from its account's list.
    async fn remove_reference(
        &self,
        namespace: &str,
        secret: &str,
        account: &str,
    ) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        if registry.peek(&self.secrets, namespace, secret).is_some() {
            return Ok(Progress::Done);
        }
        let account = registry.peek(&self.accounts, namespace, account);
        let Some(mut account) = account.map(|account| account.tree()).transpose()? else {
            return Ok(Progress::Done);
        };
        let list = account.get("secrets").and_then(Value::as_array).unwrap_or_default();
        let is_other = |reference: &&Value| reference.str_at(&["name"]) != Some(secret);
        let others: Vec<Value> = list.iter().filter(is_other).cloned().collect();
        if others.len() == list.len() {
            return Ok(Progress::Done);
        }
        account.make_object().insert("secrets", others);
        let one = target(&self.accounts, namespace, object::name(&account), "");
        let (body, options) = (body(&account), WriteOptions::default());
        let context = self.environment.context(USER);
        registry.update(&one, &body, &options, &context, &granted).await?;
        Ok(Progress::Done)
    }
}
