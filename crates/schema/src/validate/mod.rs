//! Checks the validation rules that the table declares.
//!
//! An object is validated after decoding and defaulting. Parts that an update does not change are
//! not validated again, so that an object stored under older rules can still be updated elsewhere.
//!
//! `metadata` has its own rules (`pintle_meta::validation`). In `status`, which components write,
//! required fields may be missing and enums may have newer values, as in upstream.

mod format;
#[cfg(test)]
mod tests;

use pintle_meta::field::{Error, ErrorType, Errors};
use pintle_value::{Path, Value};

use crate::{Field, Presence, Rule, Scalar, Schema, Shape, TypeId};

/// Validates a decoded and defaulted object by the table's rules; `old` is the object that it
/// replaces.
pub fn validate(schema: &Schema, ty: TypeId, value: &Value, old: Option<&Value>) -> Errors {
    let mut validator =
        Validator { schema, errors: Errors::new(), path: Path::root(), in_status: false };
    if old != Some(value) {
        validator.value(ty, value, old);
    }
    validator.errors
}

struct Validator<'a> {
    schema: &'a Schema,
    errors: Errors,
    /// The path of the value that is being validated.
    path: Path,
    in_status: bool,
}

/// Fields that OpenAPI requires because Go always writes them, but that may be empty.
const MAY_BE_EMPTY: &[(&str, &str)] = &[
    ("io.k8s.api.core.v1.HTTPHeader", "value"),
    ("io.k8s.api.core.v1.Sysctl", "value"),
    // The core group has no name.
    ("io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource", "group"),
];

impl Validator<'_> {
    fn value(&mut self, ty: TypeId, value: &Value, old: Option<&Value>) {
        if !self.schema.index().has_rules(ty) {
            return;
        }
        match (&self.schema.get(ty).shape, value) {
            (Shape::Struct { .. }, Value::Object(_)) => self.members(ty, value, old),
            (Shape::Map { value: ty, .. }, Value::Object(members)) => {
                for (key, member) in members.iter() {
                    let old = old.and_then(|old| old.get(key));
                    self.at(|path| path.push_key(key), *ty, member, old);
                }
            }
            (Shape::List { item: ty, .. }, Value::Array(items)) => {
                for (i, item) in items.iter().enumerate() {
                    let old = old.and_then(|old| old.as_array()?.get(i));
                    self.at(|path| path.push_index(i), *ty, item, old);
                }
            }
            _ => {}
        }
    }

    /// Checks a value at the current path extended by `step`.
    fn at(&mut self, step: impl FnOnce(&mut Path), ty: TypeId, value: &Value, old: Option<&Value>) {
        if old == Some(value) {
            return;
        }
        let back = self.path.len();
        step(&mut self.path);
        self.value(ty, value, old);
        self.path.truncate(back);
    }

    fn members(&mut self, ty: TypeId, value: &Value, old: Option<&Value>) {
        let schema = self.schema;
        let Shape::Struct { fields, by_name, .. } = &schema.get(ty).shape else { return };
        let mut entries = value.as_object().map_or(&[][..], |members| members.as_slice());
        let is_root = self.path.is_empty();
        for &rank in schema.index().validated(ty) {
            let field = &fields[usize::from(by_name[usize::from(rank)])];
            let name = field.name.as_ref();
            // The fields and the entries are sorted by name.
            while let Some(((key, _), rest)) = entries.split_first()
                && key.as_str() < name
            {
                entries = rest;
            }
            let member = entries.first().filter(|(key, _)| key == name).map(|(_, member)| member);
            if is_root && name == "metadata" {
                continue;
            }
            let old_member = old.map(|old| old.get(name));
            if old_member == Some(member) {
                continue;
            }
            let back = self.path.len();
            self.path.push_field(name);
            self.in_status |= is_root && name == "status";
            self.member(ty, field, member, old_member);
            self.in_status &= !is_root;
            self.path.truncate(back);
        }
    }

    /// Checks a member that is new or changed; `old` is `None` if there is no old object.
    fn member(
        &mut self,
        ty: TypeId,
        field: &Field,
        member: Option<&Value>,
        old: Option<Option<&Value>>,
    ) {
        if field.rules.contains(&Rule::Immutable) && old.is_some() {
            let value = member.unwrap_or(&Value::Null);
            self.errors.push(Error::invalid(&self.path, value, "field is immutable"));
            return;
        }
        if self.is_missing(ty, field, member) {
            // A Go struct that is not behind a pointer always exists, possibly without content.
            let is_struct = matches!(self.schema.get(field.ty).shape, Shape::Struct { .. });
            if is_struct && field.presence == Presence::Always {
                self.value(field.ty, &Value::object(), None);
            } else {
                self.errors.push(Error::required(&self.path, ""));
            }
            return;
        }
        let Some(member) = member else { return };
        for rule in field.rules.iter() {
            match member {
                Value::Array(items) if !matches!(rule, Rule::MaxItems(_)) => {
                    for (i, item) in items.iter().enumerate() {
                        let back = self.path.len();
                        self.path.push_index(i);
                        self.rule(rule, item);
                        self.path.truncate(back);
                    }
                }
                _ => self.rule(rule, member),
            }
        }
        self.value(field.ty, member, old.flatten());
    }

    /// Whether a required member is missing. An empty text counts as missing, as in upstream's
    /// functions; empty lists and maps are left to handwritten validation.
    fn is_missing(&self, ty: TypeId, field: &Field, member: Option<&Value>) -> bool {
        if !field.required || self.in_status {
            return false;
        }
        match self.schema.get(field.ty).shape {
            Shape::List { .. } | Shape::Map { .. } => false,
            // A missing number or boolean is zero or false in Go, which only a minimum rejects.
            Shape::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Float64) => {
                let is_bound = |rule: &Rule| matches!(rule, Rule::Minimum(1..));
                member.is_none_or(Value::is_null) && field.rules.iter().any(is_bound)
            }
            _ => match member {
                Some(Value::String(text)) if !text.is_empty() => false,
                None | Some(Value::Null | Value::String(_)) => {
                    let here = (self.schema.get(ty).name.as_ref(), field.name.as_ref());
                    !MAY_BE_EMPTY.contains(&here)
                }
                Some(_) => false,
            },
        }
    }

    fn rule(&mut self, rule: &Rule, value: &Value) {
        let path = &self.path;
        let error = match (rule, value) {
            (Rule::Enum(allowed), Value::String(text)) => {
                let known = text.is_empty() || allowed.iter().any(|one| one == text.as_str());
                if known || self.in_status {
                    return;
                }
                let mut allowed: Vec<_> = allowed.iter().map(AsRef::as_ref).collect();
                allowed.sort_unstable();
                Error::not_supported(path, value, &allowed)
            }
            (Rule::Minimum(least), Value::Int(n)) if n < least => {
                Error::invalid(path, value, format!("must be greater than or equal to {least}"))
            }
            (Rule::Maximum(most), Value::Int(n)) if n > most => {
                Error::invalid(path, value, format!("must be less than or equal to {most}"))
            }
            (Rule::MinLength(least), Value::String(text))
                if text.chars().count() < size(*least) =>
            {
                let detail = format!("must be at least {least} {}", characters(*least));
                Error::invalid(path, value, detail)
            }
            (Rule::MaxLength(most), Value::String(text)) if text.chars().count() > size(*most) => {
                Error {
                    error_type: ErrorType::TooLong,
                    field: path.as_str().to_owned(),
                    value: None,
                    detail: format!("may not be more than {most} {}", characters(*most)),
                }
            }
            (Rule::MaxBytes(most), Value::String(text)) if text.len() > size(*most) => {
                Error::too_long(path, size(*most))
            }
            (Rule::MaxItems(most), Value::Array(items)) if items.len() > size(*most) => {
                Error::too_many(path, items.len(), size(*most))
            }
            (Rule::MaxItems(most), Value::Object(members)) if members.len() > size(*most) => {
                Error::too_many(path, members.len(), size(*most))
            }
            (Rule::Format(format), Value::String(text)) if !text.is_empty() => {
                let wrong = format::check(format, text);
                self.errors
                    .extend(wrong.into_iter().map(|words| Error::invalid(path, value, words)));
                return;
            }
            _ => return,
        };
        self.errors.push(error);
    }
}

const fn size(bound: u32) -> usize {
    bound as usize
}

const fn characters(count: u32) -> &'static str {
    if count == 1 { "character" } else { "characters" }
}
