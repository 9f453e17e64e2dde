//! POST of what makes something happen.

use pintle_meta::Status;
use pintle_meta::object;
use pintle_value::json;

use super::{Draft, Write};
use crate::action::{Action, Request};
use crate::admission::{Mutated, Operation};
use crate::answer::Outcome;
use crate::definition::SubresourceBehaviour;
use crate::request::{Body, Encoding, Target};

/// What happens when something is posted to a target, where it is not to be kept.
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
    /// Reads what is posted, asks the admission chain, and lets it happen.
    pub(crate) async fn act(&self, body: &Body, action: &dyn Action) -> Result<Outcome, Status> {
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
        let Draft { mut tree, mut warnings, .. } = draft;
        tree.make_object().insert("kind", kind.kind.clone());
        tree.make_object().insert("apiVersion", api_version.clone());
        self.place(&mut tree)?;
        let name = if self.target.name.is_empty() {
            object::name(&tree).to_owned()
        } else {
            self.target.name.to_string()
        };
        self.admit(Operation::Create, &name, &mut tree, None).await?;
        let changed = {
            let attributes = self.attributes(Operation::Create, &name, Some(&tree), None);
            match self.registry.admission.mutate(&attributes, self.registry) {
                Some(mutated) => mutated.await?,
                None => Mutated::default(),
            }
        };
        warnings.extend(changed.warnings);
        if let Some(object) = changed.object {
            let bytes = json::to_string(&object).into();
            let body = Body { bytes, encoding: Encoding::Json };
            tree = self.decode_any(&body, &resource.schema, ty, (&kind.kind, &versions))?.tree;
        }
        warnings.extend(self.review(Operation::Create, &name, &tree, None).await?);
        let answer = action
            .perform(Request {
                registry: self.registry,
                target: self.target,
                posted: tree,
                options: self.options,
                context: self.context,
            })
            .await?;
        Ok(Outcome { created: true, ..Outcome::ok(answer).warn(warnings) })
    }
}
