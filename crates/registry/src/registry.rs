//! The registry: resources by name, and one call for each verb.

use std::sync::Arc;

use pintle_meta::{GroupVersionResource, Status};
use pintle_store::Revision;

use crate::answer::{List, Outcome};
use crate::request::{Body, Context, DeleteOptions, ListOptions, PatchType, Target, WriteOptions};
use crate::watch::Watch;
use crate::{Resource, ResourceDefinition};

/// All resources and what can be done with them.
pub struct Registry {}

impl Registry {
    /// The resource that a URL names, if it is served.
    pub fn resource(&self, name: &GroupVersionResource) -> Option<Arc<Resource>> {
        let _ = name;
        todo!()
    }

    /// Every served resource, for discovery; a snapshot, with a number that changes with the set.
    pub fn resources(&self) -> (u64, Arc<[Arc<Resource>]>) {
        todo!()
    }

    /// Serves further resources, or other definitions of served ones.
    pub fn define(&self, definitions: Vec<ResourceDefinition>) {
        let _ = definitions;
        todo!()
    }

    /// The newest revision that readers see.
    pub fn head(&self) -> Revision {
        todo!()
    }

    /// One object. `resource_version` as the client gave it, `""` for the newest.
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Outcome, Status> {
        let _ = (target, resource_version);
        todo!()
    }

    /// A collection, in one namespace or in all.
    pub async fn list(&self, target: &Target, options: &ListOptions) -> Result<List, Status> {
        let _ = (target, options);
        todo!()
    }

    /// What becomes of a collection from now on, or from a resource version on.
    pub async fn watch(&self, target: &Target, options: &ListOptions) -> Result<Watch, Status> {
        let _ = (target, options);
        todo!()
    }

    /// POST to a collection, or to a subresource that is created.
    pub async fn create(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        let _ = (target, body, options, context);
        todo!()
    }

    /// PUT.
    pub async fn update(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        let _ = (target, body, options, context);
        todo!()
    }

    /// PATCH.
    pub async fn patch(
        &self,
        target: &Target,
        patch: &[u8],
        patch_type: PatchType,
        options: &WriteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        let _ = (target, patch, patch_type, options, context);
        todo!()
    }

    /// DELETE of one object.
    pub async fn delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        context: &Context,
    ) -> Result<Outcome, Status> {
        let _ = (target, options, context);
        todo!()
    }

    /// DELETE of a collection: the deleted objects, as a list (STRAT-06).
    pub async fn delete_collection(
        &self,
        target: &Target,
        selection: &ListOptions,
        options: &DeleteOptions,
        context: &Context,
    ) -> Result<List, Status> {
        let _ = (target, selection, options, context);
        todo!()
    }
}
