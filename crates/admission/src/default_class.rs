//! Sets the default class of claims and ingresses without one (upstream: `DefaultStorageClass`,
//! `DefaultIngressClass`).

use std::cmp::Reverse;

use pintle_meta::{Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::{Map, Value};

use crate::{all, creates};

/// A plugin that sets the class of new objects of a resource to the default class.
pub(crate) struct DefaultClass {
    /// The resource whose objects have a class: group and plural.
    of: (&'static str, &'static str),
    /// The resource of classes.
    classes: (&'static str, &'static str),
    /// The member of the spec that names the class.
    member: &'static str,
    /// The deprecated annotation with the class.
    annotation: &'static str,
    /// The annotations that make a class the default.
    marks: &'static [&'static str],
}

/// The plugin for claims.
pub(crate) const STORAGE: DefaultClass = DefaultClass {
    of: ("", "persistentvolumeclaims"),
    classes: ("storage.k8s.io", "storageclasses"),
    member: "storageClassName",
    annotation: "volume.beta.kubernetes.io/storage-class",
    marks: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
};

/// The plugin for ingresses.
pub(crate) const INGRESS: DefaultClass = DefaultClass {
    of: ("networking.k8s.io", "ingresses"),
    classes: ("networking.k8s.io", "ingressclasses"),
    member: "ingressClassName",
    annotation: "kubernetes.io/ingress.class",
    marks: &["ingressclass.kubernetes.io/is-default-class"],
};

impl Admission for DefaultClass {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate])
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        object: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if !creates(write, self.of.0, self.of.1) {
            return Ok(());
        }
        let has_class = object.at(&["spec", self.member]).is_some_and(|class| !class.is_null());
        let annotated =
            object::annotations(object).is_some_and(|a| a.contains_key(self.annotation));
        if has_class || annotated {
            return Ok(());
        }
        if let Some(class) = self.default(registry)? {
            object.object_entry("spec").insert(self.member, object::name(&class));
        }
        Ok(())
    }
}

impl DefaultClass {
    /// Returns the class that is marked as default: of several the newest, then the first by name.
    fn default(&self, registry: &Registry) -> Result<Option<Value>, Status> {
        let marked = all(registry, self.classes.0, self.classes.1)?.into_iter().filter(|class| {
            let is = |annotations: &Map, mark: &str| {
                annotations.get(mark).and_then(Value::as_str) == Some("true")
            };
            object::annotations(class).is_some_and(|a| self.marks.iter().any(|mark| is(a, mark)))
        });
        Ok(marked.min_by_key(|class| {
            let created = object::text(class, "creationTimestamp").to_owned();
            (Reverse(created), object::name(class).to_owned())
        }))
    }
}
