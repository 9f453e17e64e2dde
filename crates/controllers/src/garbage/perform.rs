//! Executes an operation on an object, in the registry or at an extension API server.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_registry::request::{PatchType, Target, WriteOptions, granted};
use pintle_value::json;

use super::USER;
use super::evaluator::Operation;
use super::extensions;
use super::owners::OwnerStates;
use crate::Environment;
use crate::extensions::{ExtensionRequest, ExtensionResource};

/// The server of an object.
pub(super) enum ServedBy {
    Registry(Target),
    Extension(Arc<ExtensionResource>),
}

/// Executes an operation. It is no error if the object no longer exists.
pub(super) async fn perform(
    environment: &Environment,
    served_by: Option<ServedBy>,
    operation: &Operation,
) -> Result<Option<OwnerStates>, Status> {
    if let Operation::Ask(_, questions) = operation {
        return extensions::ask(environment, &environment.account(USER), questions).await.map(Some);
    }
    let outcome = match served_by {
        Some(ServedBy::Registry(target)) => write(environment, &target, operation).await,
        Some(ServedBy::Extension(resource)) => {
            write_elsewhere(environment, &resource, operation).await
        }
        None => Ok(()),
    };
    match outcome {
        Err(status) if status.code != 404 => Err(status),
        Ok(()) | Err(_) => Ok(None),
    }
}

async fn write(
    environment: &Environment,
    target: &Target,
    operation: &Operation,
) -> Result<(), Status> {
    let (registry, context) = (&environment.registry, environment.context(USER));
    match operation {
        Operation::Delete(_, options) => {
            registry.delete(target, options, &context).await.map(|_| ())
        }
        Operation::Patch(_, patch) => {
            let (patch, options) = (json::to_string(patch), WriteOptions::default());
            let patch = patch.as_bytes();
            let patched =
                registry.patch(target, patch, PatchType::Merge, &options, &context, &granted);
            patched.await.map(|_| ())
        }
        Operation::Ask(..) => Ok(()),
    }
}

async fn write_elsewhere(
    environment: &Environment,
    resource: &ExtensionResource,
    operation: &Operation,
) -> Result<(), Status> {
    let (namespace, name) = operation.key().split();
    let request = match operation {
        Operation::Delete(_, options) => ExtensionRequest::Delete { namespace, name, options },
        Operation::Patch(_, patch) => ExtensionRequest::Patch { namespace, name, patch },
        Operation::Ask(..) => return Ok(()),
    };
    environment.extensions.ask(&environment.account(USER), resource, request).await.map(|_| ())
}
