//! The path to the value that is being decoded: a linked list on the stack, formatted only for a message.

use std::fmt::Write;

use crate::{Schema, TypeId, go_names};

/// A path from the root of the object: its last step, and the path before it.
#[derive(Clone, Copy)]
pub(super) struct FieldPath<'p> {
    before: Option<&'p FieldPath<'p>>,
    step: Step<'p>,
}

/// One step down.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    /// The object itself.
    Root,
    /// A member of a struct: its name, and that of the struct's type.
    Field { name: &'p str, of: &'p str },
    /// A member of an object within an object, which upstream decodes apart.
    Embedded(&'p str),
    /// An entry of a map.
    Key(&'p str),
    /// An item of a list.
    Index(usize),
}

impl<'p> FieldPath<'p> {
    pub(super) const ROOT: FieldPath<'static> = FieldPath { before: None, step: Step::Root };

    /// This path with one more step.
    pub(super) const fn then(&'p self, step: Step<'p>) -> FieldPath<'p> {
        FieldPath { before: Some(self), step }
    }

    /// Whether it is the path of the object itself.
    pub(super) const fn is_root(&self) -> bool {
        self.before.is_none()
    }

    /// The steps from the root on.
    fn steps(&self) -> Vec<Step<'_>> {
        let mut steps: Vec<_> =
            std::iter::successors(Some(self), |path| path.before).map(|path| path.step).collect();
        steps.reverse();
        steps
    }

    /// Whether the first step is that member of the object.
    pub(super) fn is_in(&self, member: &str) -> bool {
        matches!(self.steps().get(1), Some(Step::Field { name, .. }) if *name == member)
    }

    /// The path as upstream's strict decoder writes it: `spec.containers[0].image`, with the keys of
    /// maps like fields.
    pub(super) fn dotted(&self) -> String {
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Root => {}
                Step::Field { name, .. } | Step::Key(name) | Step::Embedded(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Index(i) => write!(path, "[{i}]").expect("writing to a String cannot fail"),
            }
        }
        path
    }

    /// What Go calls the type `ty` at this path.
    pub(super) fn go_type(&self, schema: &Schema, ty: TypeId) -> String {
        let steps = std::iter::successors(Some(self), |path| path.before);
        let field = steps.enumerate().find_map(|(depth, path)| match path.step {
            Step::Field { name, of } => Some((of, name, depth)),
            _ => None,
        });
        let named = field.and_then(|(of, name, depth)| go_names::inside(of, name, depth));
        named.map_or_else(|| go_names::of_type(schema, ty), str::to_owned)
    }

    /// The path as an error of Go's decoder writes it: the struct that holds the last field, then the fields all
    /// the way from the root, without indices and keys.
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
