//! Selection: which objects of a collection a list or a watch is about.

use std::sync::Arc;

use pintle_meta::{Status, fields, labels};
use pintle_value::Str;

use crate::request::{ListOptions, Target};
use crate::{Object, Resource, SelectableField};

/// The longest selector that is read, in bytes: a URL can carry no more.
const SELECTOR_BYTES_MAX: usize = 64 * 1024;

/// Which objects, by name, labels and fields.
pub(crate) struct Selection {
    labels: labels::Selector,
    fields: Vec<FieldTest>,
    resource: Arc<Resource>,
    namespace: Str,
}

/// One requirement of a field selector.
struct FieldTest {
    field: Field,
    wanted: Str,
    equal: bool,
}

/// A selectable member.
enum Field {
    Name,
    Namespace,
    /// At this place in the object's index.
    Indexed(usize),
}

impl Selection {
    /// Reads the selectors of a request (SEL-01, SEL-02).
    pub(crate) fn of(target: &Target, options: &ListOptions) -> Result<Self, Status> {
        let resource = &target.resource;
        for text in [&options.label_selector, &options.field_selector] {
            if text.len() > SELECTOR_BYTES_MAX {
                return Err(Status::bad_request("the selector is too long"));
            }
        }
        let labels = labels::Selector::parse(&options.label_selector)
            .map_err(|e| Status::bad_request(e.to_string()))?;
        let selector = fields::Selector::parse(&options.field_selector)
            .map_err(|e| Status::bad_request(e.to_string()))?;
        let mut tests = Vec::new();
        for requirement in selector.requirements() {
            tests.push(FieldTest {
                field: Field::named(resource, &requirement.field)?,
                wanted: requirement.value.clone(),
                equal: requirement.equal,
            });
        }
        if !target.name.is_empty() {
            tests.push(FieldTest { field: Field::Name, wanted: target.name.clone(), equal: true });
        }
        let namespace = target.namespace.clone();
        Ok(Self { labels, fields: tests, resource: resource.clone(), namespace })
    }

    /// Whether everything in the namespace is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        let selectable = self.resource.strategy.fields();
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && self.fields.iter().all(|test| test.passes(object, selectable))
            && (self.labels.is_everything() || {
                let index = object.indexed(selectable);
                self.labels.matches(|key| index.label(key))
            })
    }
}

impl FieldTest {
    fn passes(&self, object: &Object, selectable: &[SelectableField]) -> bool {
        let value = match self.field {
            Field::Name => object.name(),
            Field::Namespace => object.namespace(),
            Field::Indexed(i) => {
                let fields = &object.indexed(selectable).fields;
                fields.get(i).map_or("", Str::as_str)
            }
        };
        (value == self.wanted) == self.equal
    }
}

impl Field {
    fn named(resource: &Resource, label: &str) -> Result<Self, Status> {
        let selectable = resource.strategy.fields();
        match label {
            "metadata.name" => Ok(Self::Name),
            "metadata.namespace" if resource.namespaced() || selectable.is_empty() => {
                Ok(Self::Namespace)
            }
            _ => match selectable.iter().position(|field| field.label == label) {
                Some(i) => Ok(Self::Indexed(i)),
                None => Err(Status::bad_request(resource.strategy.unknown_field(label))),
            },
        }
    }
}
