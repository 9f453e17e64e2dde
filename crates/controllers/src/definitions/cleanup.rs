//! Deletion of a definition's objects (upstream: `pkg/controller/finalizer`).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_crd::{Crd, lifecycle};
use pintle_meta::object;
use pintle_registry::Resource;
use pintle_registry::request::{DeleteOptions, ListOptions};
use pintle_value::Value;

use super::{Outcome, Progress, Writer, source};
use crate::target;

impl Writer {
    /// Deletes the objects of a deleted definition, then removes the definition's finalizer.
    pub(super) fn clean_up(self, crd: Value) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let registry = &self.environment.registry;
            let (reason, words) = match self.storage_resource(&crd) {
                None => ("NeverEstablished", "resource was never established"),
                Some(resource) => {
                    if registry.objects(&resource).next().is_some() {
                        return self.delete_objects(&crd, &resource).await;
                    }
                    ("InstanceDeletionCompleted", "removed all instances")
                }
            };
            let now = (self.environment.clock)().unix_micros;
            let others: Vec<Value> = object::finalizers(&crd)
                .filter(|finalizer| *finalizer != lifecycle::CLEANUP_FINALIZER)
                .map(Value::from)
                .collect();
            self.write(|crd| {
                set_terminating(crd, (false, reason, words), now);
                object::metadata_mut(crd).insert("finalizers", others);
            })
            .await?;
            Ok(Progress::Done)
        })
    }

    /// Returns the resource of the objects in their storage version, whichever versions are served;
    /// `None` if the definition was never established.
    fn storage_resource(&self, crd: &Value) -> Option<Arc<Resource>> {
        if !Crd(crd).has("Established") {
            return None;
        }
        let registry = &self.environment.registry;
        let source = source(registry, Some(self.crds.clone()), object::name(crd).into());
        let caller = self.caller.clone();
        let definition = pintle_crd::storage_resource(crd, &self.built_in, source, caller)?;
        Some(registry.unserved(definition))
    }

    async fn delete_objects(&self, crd: &Value, resource: &Arc<Resource>) -> Outcome {
        let registry = &self.environment.registry;
        let context = self.environment.context(crate::SERVER);
        let everything = target(resource, "", "", "");
        let (selection, options) = (ListOptions::default(), DeleteOptions::default());
        let deleted = registry.delete_collection(&everything, &selection, &options, &context).await;
        let (reason, words) = match deleted {
            Ok(_) => {
                ("InstanceDeletionInProgress", "CustomResource deletion is in progress".into())
            }
            Err(status) => {
                ("InstanceDeletionFailed", format!("could not issue all deletes: {status}"))
            }
        };
        let now = context.now.unix_micros;
        let mut updated = crd.clone();
        set_terminating(&mut updated, (true, reason, &words), now);
        if updated != *crd {
            self.write(|crd| set_terminating(crd, (true, reason, &words), now)).await?;
        }
        Ok(Progress::Waiting)
    }
}

/// Sets the condition `Terminating`: status, reason and message.
fn set_terminating(crd: &mut Value, (holds, reason, words): (bool, &str, &str), now_micros: i64) {
    let mut status = crd.get("status").cloned().unwrap_or_else(Value::object);
    lifecycle::set_condition(&mut status, ("Terminating", holds, reason, words), now_micros);
    crd.make_object().insert("status", status);
}
