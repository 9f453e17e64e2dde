//! Selection: which objects of a collection a list or a watch is about.

use std::sync::Arc;

use pintle_meta::{Status, fields, labels};
use pintle_value::Str;

use crate::request::{ListOptions, Target};
use crate::{Object, Resource, StorageConverter, Unreadable};

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
    /// Its position in the object's index.
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

    /// Whether objects are selected by more than where they are and how they are called.
    pub(crate) fn is_by_content(&self) -> bool {
        !self.labels.is_everything()
            || self.fields.iter().any(|test| matches!(test.field, Field::Indexed(_)))
    }

    /// Whether objects are selected by what they are in the resource's version, which is not what is
    /// kept: to be asked of what [`Resource::answered`] gives.
    pub(crate) fn is_of_view(&self) -> bool {
        self.is_by_content() && self.resource.converter().is_some_and(StorageConverter::converts)
    }

    /// Whether an object is where and called what is selected.
    pub(crate) fn is_named(&self, object: &Object) -> bool {
        let mut names = self.fields.iter().filter(|test| !matches!(test.field, Field::Indexed(_)));
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && names.all(|test| test.passes(object, &self.resource))
    }

    /// Whether an object is selected. One that cannot be read is, unless its name says otherwise: who would
    /// be given it refuses.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && self.fields.iter().all(|test| test.passes(object, &self.resource))
            && (self.labels.is_everything()
                || match object.index(&self.resource) {
                    Ok(index) => self.labels.matches(|key| index.label(key)),
                    Err(_) => true,
                })
    }
}

impl FieldTest {
    fn passes(&self, object: &Object, resource: &Resource) -> bool {
        let value = match self.field {
            Field::Name => object.name(),
            Field::Namespace => object.namespace(),
            Field::Indexed(i) => {
                let Ok(index) = object.index(resource) else { return true };
                if index.fields_id != resource.fields_id {
                    let field = resource.strategy.fields().get(i);
                    let value = field.map(|field| {
                        let tree = object.selectable(std::slice::from_ref(field))?;
                        Ok::<_, Unreadable>(field.value.of(&tree))
                    });
                    let Ok(value) = value.transpose() else { return true };
                    return (value.unwrap_or_default() == self.wanted) == self.equal;
                }
                index.fields.get(i).map_or("", Str::as_str)
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
                None => {
                    let why = resource.strategy.unknown_field(&resource.api_version(), label);
                    Err(Status::bad_request(why))
                }
            },
        }
    }
}
