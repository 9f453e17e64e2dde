//! Validation that needs an authorizer or cryptography, which `pintle-kinds` does not have
//! (upstream: strategies with an authorizer, and `validateCSR`). It runs after a kind's other
//! rules.

mod claims;
mod parameters;
mod possession;

use std::sync::Arc;

use pintle_auth::Authorizer;
use pintle_meta::field::Error;
use pintle_meta::quote::quote;
use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation, Waited};
use pintle_value::{Path, Value};

use super::signers;
use crate::pki::proves_possession;

/// Refuses objects whose writer lacks a permission that validation requires, and certificate
/// requests that cannot be decoded or verified.
pub(crate) struct Validation {
    authorizer: Arc<dyn Authorizer>,
    /// Whether changes of the status of ResourceClaims need permissions of their own.
    authorizes_claims: bool,
}

impl Validation {
    pub(crate) fn new(authorizer: &Arc<dyn Authorizer>, authorizes_claims: bool) -> Self {
        Self { authorizer: authorizer.clone(), authorizes_claims }
    }
}

impl Admission for Validation {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate, Hook::ValidateRegistered])
    }

    fn validate(&self, write: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        let is_new = !write.has_old() && write.operation != Operation::Delete;
        let Some(new) = write.object.filter(|_| is_new) else { return Ok(()) };
        let of = &write.resource.resource;
        let error = match (of.group.as_str(), of.resource.as_str(), write.subresource) {
            (signers::GROUP, "certificatesigningrequests", "") => unusable(new),
            (signers::GROUP, "podcertificaterequests", "") => possession::possession_error(new),
            _ => None,
        };
        refuse(write, new, error)
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let new = write.object.filter(|_| write.operation != Operation::Delete)?;
        let of = &write.resource.resource;
        let authorizer = &*self.authorizer;
        match (of.group.as_str(), of.resource.as_str(), write.subresource) {
            (signers::GROUP, "podcertificaterequests", "status") => {
                Some(Box::pin(
                    async move { refuse(write, new, unsigned(write, new, authorizer).await) },
                ))
            }
            (claims::GROUP, "resourceclaims", "status") if self.authorizes_claims => {
                let change = claims::Change::of(write)?;
                Some(Box::pin(async move {
                    let errors = change.errors(authorizer).await;
                    if errors.is_empty() {
                        return Ok(());
                    }
                    let kind = write.resource.group_kind();
                    Err(Status::invalid(&kind, object::name(new), &errors))
                }))
            }
            (parameters::GROUP, _, "") => {
                let question = parameters::question(write, new, registry)?;
                Some(Box::pin(
                    async move { refuse(write, new, question.refusal(authorizer).await) },
                ))
            }
            _ => None,
        }
    }
}

fn refuse(write: &Attributes<'_>, new: &Value, error: Option<Error>) -> Result<(), Status> {
    match error {
        Some(error) => {
            Err(Status::invalid(&write.resource.group_kind(), object::name(new), &[error]))
        }
        None => Ok(()),
    }
}

/// Returns an error if a certificate request cannot be decoded or another key signed it.
fn unusable(request: &Value) -> Option<Error> {
    let why = match signers::requested(request) {
        Ok(wanted) if proves_possession(&wanted) => return None,
        Ok(_) => "the request is not signed by its key".to_owned(),
        Err(why) => why.to_string(),
    };
    let value = request.at(&["spec", "request"]).unwrap_or(&Value::Null);
    Some(Error::invalid(&Path::new("spec").field("request"), value, why))
}

/// Returns an error if the writer must not change the status of a PodCertificateRequest.
async fn unsigned(
    write: &Attributes<'_>,
    new: &Value,
    authorizer: &dyn Authorizer,
) -> Option<Error> {
    let old = write.old()?;
    let signer = old.str_at(&["spec", "signerName"]).unwrap_or_default();
    let is_same = new.get("status") == old.get("status");
    if is_same || signers::may_act(authorizer, write.user, "sign", signer).await {
        return None;
    }
    let (user, signer) = (quote(&write.user.name), quote(signer));
    let why = format!("User {user} is not permitted to \"sign\" for signer {signer}");
    Some(Error::forbidden(&Path::new("spec").field("signerName"), why))
}
