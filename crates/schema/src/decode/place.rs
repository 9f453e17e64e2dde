//! Where the decoder is: a chain of steps on its stack, made into text only for a message.

use std::fmt::Write;

use crate::{Scalar, Schema, Shape, TypeId};

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

/// What Go calls a type: `v1.PodSpec` for `io.k8s.api.core.v1.PodSpec`.
pub(super) fn go_type(schema: &Schema, ty: TypeId) -> String {
    let ty = schema.get(ty);
    match &ty.shape {
        Shape::Struct { .. } => {
            let at = ty.name.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
            ty.name[at..].to_owned()
        }
        Shape::Map { value, .. } => format!("map[string]{}", go_type(schema, *value)),
        Shape::List { item, .. } => format!("[]{}", go_type(schema, *item)),
        Shape::Scalar(scalar) => go_scalar(*scalar).to_owned(),
    }
}

/// What Go calls the type that a scalar is decoded as.
const fn go_scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 => "int64",
        Scalar::Float64 => "float64",
        Scalar::Bytes => "[]uint8",
        Scalar::Quantity => "resource.Quantity",
        Scalar::RawExtension => "runtime.RawExtension",
        Scalar::Fields => "v1.FieldsV1",
        Scalar::Any => "interface {}",
        Scalar::String | Scalar::Time | Scalar::MicroTime | Scalar::Duration => "string",
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
