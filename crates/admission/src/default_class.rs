//! Sets the default class of claims and ingresses without one (upstream: `DefaultStorageClass`,
//! `DefaultIngressClass`).

use std::cmp::Reverse;

use pintle_meta::{GroupVersionResource, Status, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::{Str, Value};

use crate::creates;

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
            object.object_entry("spec").insert(self.member, class);
        }
        Ok(())
    }
}

impl DefaultClass {
    /// Returns the name of the class that is marked as default: of several the newest, then the
    /// first by name. Only the members that decide are decoded.
    fn default(&self, registry: &Registry) -> Result<Option<Str>, Status> {
        let annotations = self.marks.iter().map(|mark| ["metadata", "annotations", *mark]);
        let annotations: Vec<_> = annotations.collect();
        let mut paths: Vec<&[&str]> = vec![&["metadata", "creationTimestamp"]];
        paths.extend(annotations.iter().map(<[_; 3]>::as_slice));
        let (group, plural) = self.classes;
        let classes = registry.resource(&GroupVersionResource::new(group, "v1", plural));
        let mut found: Option<(Reverse<String>, Str)> = None;
        for class in classes.iter().flat_map(|classes| registry.objects(classes)) {
            let members = class.excerpt(&paths)?;
            let marked = annotations.iter().any(|path| members.str_at(path) == Some("true"));
            if marked {
                let created = Reverse(object::text(&members, "creationTimestamp").to_owned());
                let one = (created, Str::from(class.name()));
                found = Some(found.map_or(one.clone(), |other| other.min(one)));
            }
        }
        Ok(found.map(|(_, name)| name))
    }
}
