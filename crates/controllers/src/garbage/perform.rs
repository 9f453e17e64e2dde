//! What is to be done about an object is done, by whoever keeps it.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_registry::request::{PatchType, Target, WriteOptions, granted};
use pintle_value::json;

use super::USER;
use super::extensions::{self, Answers};
use super::judge::Deed;
use crate::Environment;
use crate::extensions::{ExtensionRequest, ExtensionResource};

/// Who keeps an object.
pub(super) enum Holder {
    Registry(Target),
    Extension(Arc<ExtensionResource>),
}

/// Does it. An object that is gone is as good as done.
pub(super) async fn perform(
    environment: &Environment,
    holder: Option<Holder>,
    deed: &Deed,
) -> Result<Option<Answers>, Status> {
    if let Deed::Ask(_, questions) = deed {
        return extensions::ask(environment, &environment.account(USER), questions).await.map(Some);
    }
    let outcome = match holder {
        Some(Holder::Registry(target)) => write(environment, &target, deed).await,
        Some(Holder::Extension(resource)) => write_elsewhere(environment, &resource, deed).await,
        None => Ok(()),
    };
    match outcome {
        Err(status) if status.code != 404 => Err(status),
        Ok(()) | Err(_) => Ok(None),
    }
}

async fn write(environment: &Environment, target: &Target, deed: &Deed) -> Result<(), Status> {
    let (registry, context) = (&environment.registry, environment.context(USER));
    match deed {
        Deed::Delete(_, options) => registry.delete(target, options, &context).await.map(|_| ()),
        Deed::Patch(_, patch) => {
            let (patch, options) = (json::to_string(patch), WriteOptions::default());
            let patch = patch.as_bytes();
            let patched =
                registry.patch(target, patch, PatchType::Merge, &options, &context, &granted);
            patched.await.map(|_| ())
        }
        Deed::Ask(..) => Ok(()),
    }
}

async fn write_elsewhere(
    environment: &Environment,
    resource: &ExtensionResource,
    deed: &Deed,
) -> Result<(), Status> {
    let (namespace, name) = deed.place().split();
    let request = match deed {
        Deed::Delete(_, options) => ExtensionRequest::Delete { namespace, name, options },
        Deed::Patch(_, patch) => ExtensionRequest::Patch { namespace, name, patch },
        Deed::Ask(..) => return Ok(()),
    };
    environment.extensions.ask(&environment.account(USER), resource, request).await.map(|_| ())
}
