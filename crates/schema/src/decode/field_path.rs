//! The path of the value that is being decoded: a linked list on the stack, formatted only for
//! messages.

use std::borrow::Cow;
use std::fmt::Write;

use pintle_meta::field::{SHOWN_BYTES_MAX, truncated};

use crate::{Schema, TypeId, go_names};

/// A path from the root of the object: its last step, and the path before it.
#[derive(Clone, Copy)]
pub(super) struct FieldPath<'p> {
    before: Option<&'p FieldPath<'p>>,
    step: Step<'p>,
}

/// One step of a path.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    /// The object itself.
    Root,
    /// A member of a struct: its name, and the name of the struct's type.
    Field { name: &'p str, of: &'p str },
    /// A member of an embedded object, which upstream decodes separately.
    Embedded(&'p str),
    /// An entry of a map.
    Key(&'p str),
    /// An item of a list.
    Index(usize),
}

impl<'p> FieldPath<'p> {
    pub(super) const ROOT: FieldPath<'static> = FieldPath { before: None, step: Step::Root };

    /// This path extended by a step.
    pub(super) const fn then(&'p self, step: Step<'p>) -> FieldPath<'p> {
        FieldPath { before: Some(self), step }
    }

    /// Whether this is the path of the object itself.
    pub(super) const fn is_root(&self) -> bool {
        self.before.is_none()
    }

    /// The steps from the root.
    fn steps(&self) -> Vec<Step<'_>> {
        let mut steps: Vec<_> =
            std::iter::successors(Some(self), |path| path.before).map(|path| path.step).collect();
        steps.reverse();
        steps
    }

    /// Whether the first step is the member `member`.
    pub(super) fn is_in(&self, member: &str) -> bool {
        matches!(self.steps().get(1), Some(Step::Field { name, .. }) if *name == member)
    }

    /// The path in the notation of upstream's strict decoder: `spec.containers[0].image`, with map
    /// keys like fields. A long path is truncated, because many messages may contain it.
    pub(super) fn dotted(&self) -> String {
        let mut path = String::new();
        for step in self.steps() {
            if path.len() > SHOWN_BYTES_MAX {
                break;
            }
            match step {
                Step::Root => {}
                Step::Field { name, .. } | Step::Key(name) | Step::Embedded(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&truncated(name));
                }
                Step::Index(i) => write!(path, "[{i}]").expect("writing to a String cannot fail"),
            }
        }
        match truncated(&path) {
            Cow::Borrowed(_) => path,
            Cow::Owned(cut) => cut,
        }
    }

    /// Go's name of the type `ty` at this path.
    pub(super) fn go_type(&self, schema: &Schema, ty: TypeId) -> String {
        let steps = std::iter::successors(Some(self), |path| path.before);
        let field = steps.enumerate().find_map(|(depth, path)| match path.step {
            Step::Field { name, of } => Some((of, name, depth)),
            _ => None,
        });
        let named = field.and_then(|(of, name, depth)| go_names::inside(of, name, depth));
        named.map_or_else(|| go_names::of_type(schema, ty), str::to_owned)
    }

    /// The path in the notation of Go's decoder: the struct that contains the last field, then all
    /// fields from the root, without indices and keys.
    pub(super) fn in_go_error(&self) -> String {
        let mut holder = "";
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Field { name, of } => {
                    holder = of;
                    path.push('.');
                    path.push_str(&go_names::embedded(of, name));
                    path.push_str(name);
                }
                Step::Embedded(_) => path.clear(),
                _ => {}
            }
        }
        if path.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}{path}", last_part(holder))
        }
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
