//! Selection: the objects that a list or a watch returns.

use std::sync::Arc;

use pintle_meta::{Status, fields, labels};
use pintle_store::Revision;
use pintle_value::Str;

use crate::cache::{Collection, FieldOf, Iter, Objects, Scope, Snapshot};
use crate::request::{ListOptions, Target};
use crate::{Object, Resource, StorageConverter, work};

/// The longest accepted selector, in bytes. A URL cannot carry a longer one.
const SELECTOR_BYTES_MAX: usize = 64 * 1024;

/// The criteria that select objects: namespace, name, labels and fields.
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

/// A field that selectors can use.
enum Field {
    Name,
    Namespace,
    /// The position of the field in the resource's `Strategy::fields`.
    Indexed(usize),
}

impl Selection {
    /// Parses the selectors of a request (SEL-01, SEL-02).
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

    /// Whether the selection has all objects of the namespace.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// Whether the selection uses labels or fields other than name and namespace.
    pub(crate) fn is_by_content(&self) -> bool {
        !self.labels.is_everything()
            || self.fields.iter().any(|test| matches!(test.field, Field::Indexed(_)))
    }

    /// Whether selectors must see objects in the resource's version, because it differs from the
    /// stored form in more than `apiVersion`. If so, selectors apply to the result of
    /// [`Resource::in_own_version`].
    pub(crate) fn is_of_view(&self) -> bool {
        self.is_by_content() && self.resource.converter().is_some_and(StorageConverter::converts)
    }

    /// Returns the work of [`matches`](Self::matches) in bytes: decoding so many takes as long. It is
    /// 0 for selectors of usual size.
    pub(crate) fn work(&self) -> usize {
        /// A comparison takes about as long as decoding a quarter of a byte.
        const COMPARED_IN_A_BYTE: usize = 4;
        let of_labels = self.labels.requirements().iter().map(|one| 1 + one.values().len());
        (of_labels.sum::<usize>() + self.fields.len()) / COMPARED_IN_A_BYTE
    }

    /// Returns the selected ones of some objects, at most `limit`, or all if it is 0, and how many
    /// objects it looked at. It pauses, so that a selector with thousands of requirements does not
    /// occupy a thread.
    pub(crate) async fn of_many<'o>(
        &self,
        objects: impl Iterator<Item = &'o Arc<Object>>,
        limit: usize,
    ) -> (Vec<&'o Arc<Object>>, u64) {
        let (mut selected, mut looked_at) = (Vec::new(), 0);
        let (mut bytes, of_one) = (0, self.work());
        for object in objects {
            looked_at += 1;
            if self.matches(object) {
                selected.push(object);
                if selected.len() == limit {
                    break;
                }
            }
            bytes += of_one;
            if bytes > work::YIELD_BYTES {
                bytes = 0;
                work::pause().await;
            }
        }
        (selected, looked_at)
    }

    /// Returns the narrowest scope that has every change of a selected object.
    pub(crate) fn scope(&self) -> Scope {
        let equal = |wanted: fn(&Field) -> bool| {
            self.fields.iter().find(|test| test.equal && wanted(&test.field))
        };
        let namespace = match equal(|field| matches!(field, Field::Namespace)) {
            Some(test) if self.namespace.is_empty() => &test.wanted,
            _ => &self.namespace,
        };
        if let Some(test) = equal(|field| matches!(field, Field::Name)) {
            match (self.resource.namespaced(), namespace.is_empty()) {
                (true, true) => return Scope::Name(test.wanted.clone()),
                (true, false) => return Scope::Item(format!("{namespace}/{}", test.wanted).into()),
                (false, _) => return Scope::Item(test.wanted.as_str().into()),
            }
        }
        // Fields of a converted view are not those of the stored object.
        if !self.is_of_view()
            && let Some(test) = equal(|field| matches!(field, Field::Indexed(_)))
            && let Field::Indexed(position) = test.field
        {
            let resource = self.resource.clone();
            return Scope::Field(FieldOf { resource, position }, test.wanted.clone());
        }
        match namespace.is_empty() {
            true => Scope::Collection,
            false => Scope::Namespace(namespace.clone()),
        }
    }

    /// Returns the newest state of a collection, perhaps without objects that are not selected. It
    /// includes all changes up to `visible`, as [`Collection::snapshot`] does.
    pub(crate) async fn snapshot(&self, collection: &Collection, visible: Revision) -> Snapshot {
        let newest = collection.snapshot(visible);
        // The fields of a converted view are not those of the stored objects.
        if self.is_of_view() || !is_long(self.candidates(&newest.objects, ""), &newest.objects) {
            return newest;
        }
        for test in self.fields.iter().filter(|test| test.equal) {
            if let Field::Indexed(position) = test.field
                && self.resource.strategy.fields()[position].is_selective
            {
                let field = FieldOf { resource: self.resource.clone(), position };
                let with = collection.snapshot_with(&field, &test.wanted, visible);
                if let Some(snapshot) = with.await {
                    return snapshot;
                }
            }
        }
        newest
    }

    /// Returns the objects from a key on among which the selected ones are: those of the namespace,
    /// or of the one key that the selection names.
    pub(crate) fn candidates<'o>(&self, objects: &'o Objects, from: &str) -> Iter<'o> {
        match self.scope() {
            Scope::Item(item) => {
                let first = objects.position(from.max(&*item));
                objects.range(first..objects.position(&format!("{item}\0")))
            }
            Scope::Namespace(namespace) => objects.within(&namespace, from),
            Scope::Collection | Scope::Name(_) | Scope::Field(..) => {
                objects.within(&self.namespace, from)
            }
        }
    }

    /// Whether an object's namespace and name match.
    pub(crate) fn is_named(&self, object: &Object) -> bool {
        let mut names = self.fields.iter().filter(|test| !matches!(test.field, Field::Indexed(_)));
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && names.all(|test| test.passes(object, &self.resource))
    }

    /// Whether an object is selected. An unreadable object matches all labels, and all fields other
    /// than name and namespace, so that the list or watch fails instead of omitting the object.
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

/// Whether a scan of some objects of a collection takes so long that an index of the collection is
/// better. Making one takes as long as a scan of all.
fn is_long(candidates: Iter<'_>, all: &Objects) -> bool {
    const SCANNED_MAX: usize = 256;
    candidates.len() >= SCANNED_MAX.max(all.len() / 16)
}

impl FieldTest {
    fn passes(&self, object: &Object, resource: &Resource) -> bool {
        let value = match self.field {
            Field::Name => object.name(),
            Field::Namespace => object.namespace(),
            Field::Indexed(position) => {
                let Ok(value) = object.field(resource, position) else { return true };
                return (*value == *self.wanted) == self.equal;
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
            // A field without a label is not offered.
            _ => match selectable.iter().position(|f| f.label == label && !label.is_empty()) {
                Some(i) => Ok(Self::Indexed(i)),
                None => {
                    let why = resource.strategy.unknown_field(&resource.api_version(), label);
                    Err(Status::bad_request(why))
                }
            },
        }
    }
}
