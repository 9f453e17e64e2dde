//! POST of an object that is not stored and triggers an action: a binding, an eviction.

use pintle_apply::server_side::{Filter, Ownership, UniformVersions};
use pintle_meta::{GroupVersionKind, Status, object};
use pintle_schema::TypeId;
use pintle_value::{Value, json};

use super::{Draft, Write};
use crate::action::{Action, Request};
use crate::admission::Operation;
use crate::definition::SubresourceBehaviour;
use crate::request::{Body, Encoding, Target};
use crate::results::Outcome;
use crate::work;

/// Returns the action that a POST to the target performs, if it performs one.
pub(crate) fn action(target: &Target) -> Option<&dyn Action> {
    if target.subresource.is_empty() {
        return target.resource.action.as_deref();
    }
    match &target.resource.subresource(&target.subresource)?.behaviour {
        SubresourceBehaviour::Action(action) => Some(&**action),
        _ => None,
    }
}

impl Write<'_> {
    /// Decodes the posted object, runs admission, and performs the action.
    pub(crate) async fn act(&self, body: &Body, action: &dyn Action) -> Result<Outcome, Status> {
        work::ahead(body.bytes.len()).await;
        let resource = &self.target.resource;
        let kind = match resource.subresource(&self.target.subresource) {
            Some(part) => part.kind.clone(),
            None => resource.gvk(),
        };
        let api_version = kind.group_version().to_string();
        let ty = resource.schema.find(action.type_name());
        let ty = ty.ok_or_else(|| Status::internal("the type of what is posted is not known"))?;
        let versions: Vec<&str> = [api_version.as_str()]
            .into_iter()
            .chain(action.old_versions().iter().copied())
            .collect();
        let draft = self.decode_any(body, &resource.schema, ty, (&kind.kind, &versions))?;
        let Draft { mut tree, .. } = draft;
        tree.make_object().insert("kind", kind.kind.clone());
        tree.make_object().insert("apiVersion", api_version.clone());
        self.audit_object_as(&tree, &resource.schema, ty);
        self.set_namespace(&mut tree)?;
        let name = if self.target.name.is_empty() {
            object::name(&tree).to_owned()
        } else {
            self.target.name.to_string()
        };
        self.admit_posted(&name, &mut tree, ty, (&kind.kind, &versions)).await?;
        let body = action
            .perform(Request {
                registry: self.registry,
                target: self.target,
                posted: tree,
                options: self.options,
                context: self.context,
            })
            .await?;
        Ok(Outcome { created: true, ..Outcome::ok(body) })
    }

    /// Decodes the posted object, sets its defaults and runs admission. The caller computes the
    /// response; nothing is stored (PATH-13).
    pub(crate) async fn receive(
        &self,
        body: &Body,
        ty: TypeId,
        kind: &GroupVersionKind,
        default: fn(&mut Value),
    ) -> Result<Value, Status> {
        work::ahead(body.bytes.len()).await;
        let version = kind.group_version().to_string();
        let named = (kind.kind.as_str(), version.as_str());
        let draft = self.decode_as(body, &self.target.resource.schema, ty, named)?;
        let Draft { mut tree, .. } = draft;
        let object = tree.make_object();
        object.insert("kind", kind.kind.clone());
        object.insert("apiVersion", version.clone());
        default(&mut tree);
        self.audit_object_as(&tree, &self.target.resource.schema, ty);
        let name = &self.target.name;
        self.admit_posted(name, &mut tree, ty, (named.0, &[named.1])).await?;
        Ok(tree)
    }

    /// Runs admission for a connection.
    pub(crate) async fn connect(&self, mut connection: Value) -> Result<(), Status> {
        if let Some(part) = self.target.resource.subresource(&self.target.subresource) {
            let object = connection.make_object();
            object.insert("kind", part.kind.kind.clone());
            object.insert("apiVersion", part.kind.group_version().to_string());
        }
        let (operation, name) = (Operation::Connect, self.target.name.as_str());
        // Changes that webhooks make to a connection's options are ignored.
        let read = |_, object: &Value| Ok(object.clone());
        self.mutate_with(operation, name, &mut connection, None, &read).await?;
        self.call_validating(operation, name, &connection, None).await
    }

    /// Runs admission on a posted object, whose fields its writer owns.
    async fn admit_posted(
        &self,
        name: &str,
        posted: &mut Value,
        ty: TypeId,
        kind: (&str, &[&str]),
    ) -> Result<(), Status> {
        let ownership = Ownership {
            versions: &UniformVersions(&self.target.resource.schema, ty),
            api_version: kind.1.first().copied().unwrap_or_default(),
            kind: kind.0,
            subresource: &self.target.subresource,
            filter: &Filter::ALL,
            created: None,
        };
        ownership.track_update(None, posted, &self.manager(), self.context.now.unix_micros);
        let read = |object: Value, _: &Value| {
            let bytes = json::to_string(&object).into();
            let body = Body { bytes, encoding: Encoding::Json };
            Ok(self.decode_any(&body, &self.target.resource.schema, ty, kind)?.tree)
        };
        self.mutate_with(Operation::Create, name, posted, None, &read).await?;
        self.call_validating(Operation::Create, name, posted, None).await
    }
}
