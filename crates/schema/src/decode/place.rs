//! Where the decoder is: a chain of steps on its stack, made into text only for a message.

use std::fmt::Write;

use crate::{Schema, TypeId, go_names};

/// One step from the root of the object, and the way to it.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    before: Option<&'p Place<'p>>,
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

impl<'p> Place<'p> {
    pub(super) const ROOT: Place<'static> = Place { before: None, step: Step::Root };

    /// The place one step further down.
    pub(super) const fn then(&'p self, step: Step<'p>) -> Place<'p> {
        Place { before: Some(self), step }
    }

    /// Whether it is that of the object itself.
    pub(super) const fn is_root(&self) -> bool {
        self.before.is_none()
    }

    /// From the root to here.
    fn steps(&self) -> Vec<Step<'_>> {
        let mut steps: Vec<_> = std::iter::successors(Some(self), |place| place.before)
            .map(|place| place.step)
            .collect();
        steps.reverse();
        steps
    }

    /// Whether the first step is that member of the object.
    pub(super) fn is_in(&self, member: &str) -> bool {
        matches!(self.steps().get(1), Some(Step::Field { name, .. }) if *name == member)
    }

    /// The path as upstream's strict decoder writes it: `spec.containers[0].image`, with the keys of
    /// maps like fields.
    pub(super) fn path(&self) -> String {
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

    /// What Go calls the type `ty` in this place.
    pub(super) fn go_type(&self, schema: &Schema, ty: TypeId) -> String {
        let steps = std::iter::successors(Some(self), |place| place.before);
        let field = steps.enumerate().find_map(|(depth, place)| match place.step {
            Step::Field { name, of } => Some((of, name, depth)),
            _ => None,
        });
        let named = field.and_then(|(of, name, depth)| go_names::inside(of, name, depth));
        named.map_or_else(|| go_names::of_type(schema, ty), str::to_owned)
    }

    /// The place as Go's decoder writes it: the struct that holds the last field, then the fields all
    /// the way from the root, without indices and keys.
    pub(super) fn in_go(&self) -> String {
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
