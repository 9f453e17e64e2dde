//! Access to variables and to fields, entries and items of values.

use std::sync::Arc;

use super::{Frame, Node, Planned, Planner};
use crate::ast::{Expr, Kind, Literal};
use crate::checker::Reference;
use crate::error::EvalError;
use crate::functions::type_value;
use crate::types::Type;
use crate::types::declaration::{Field, Object};
use crate::value::{Eval, Map, Text, Val, lift};

/// A value and a path from it.
///
/// Invariant: a part of an expression that upstream plans as one attribute is one access, because
/// each access costs one, and each step of its path one.
#[derive(Debug)]
pub(crate) struct Access {
    base: Base,
    path: Vec<Step>,
    /// Whether only the presence of the last step is tested.
    test_only: bool,
}

#[derive(Debug)]
enum Base {
    Variable(usize),
    /// The variable that is a composition.
    Composed,
    Local(usize),
    Node(Node),
}

/// One step of a path.
#[derive(Debug)]
struct Step {
    key: Key,
    /// Whether absence, here and in later steps, is not an error.
    optional: bool,
}

#[derive(Debug)]
enum Key {
    /// A field or key; for a field with the object that declares it, to find its value without a
    /// search.
    Text {
        text: Box<str>,
        object: Option<Arc<Object>>,
        field: usize,
    },
    Constant(Val<'static>),
    Computed(Node),
}

impl Planner<'_> {
    /// Plans a name, `a.b`, `a[b]`, `a.?b`, `a[?b]` or `has(a.b)`.
    pub(super) fn access(&mut self, expr: &Expr) -> Planned {
        match &expr.kind {
            Kind::Ident(name) => Ok(self.name(expr, name)),
            Kind::Select(select) => {
                if let Some(Reference::Variable(_) | Reference::Type(_)) =
                    self.checked.reference(expr)
                {
                    return Ok(self.name(expr, ""));
                }
                let declared = self.checked.type_of(&select.operand);
                let key = text_key(&select.field, declared);
                let operand = self.plan(&select.operand)?;
                self.record_composed_use(&operand, &select.field);
                Ok(extend(operand, Step { key, optional: false }, select.test_only))
            }
            Kind::Call(call) => {
                let [operand, index] = &call.args[..] else {
                    return Err(EvalError::no_such_overload());
                };
                let declared = self.checked.type_of(operand);
                let key = match index.as_literal() {
                    Some(Literal::String(text)) => text_key(text, declared),
                    _ => match self.plan(index)? {
                        Node::Constant(value) => Key::Constant(constant_key(value)?),
                        node => Key::Computed(node),
                    },
                };
                let optional = &*call.function != "_[_]";
                let operand = self.plan(operand)?;
                if let Key::Text { text, .. } = &key {
                    self.record_composed_use(&operand, text);
                }
                Ok(extend(operand, Step { key, optional }, false))
            }
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// Records which value of a composition a step may use.
    fn record_composed_use(&mut self, operand: &Node, name: &str) {
        if matches!(operand, Node::Access(a) if matches!(a.base, Base::Composed) && a.path.is_empty())
        {
            self.used_values.push(name.into());
        }
    }

    fn name(&self, expr: &Expr, name: &str) -> Node {
        let base = match self.checked.reference(expr) {
            Some(Reference::Variable(index)) if self.composed == Some(*index) => Base::Composed,
            Some(Reference::Variable(index)) => Base::Variable(*index),
            Some(Reference::Type(t)) => return Node::Constant(Val::Type(type_value(t))),
            _ => {
                let name = name.strip_prefix('.').unwrap_or(name);
                Base::Local(self.slot(name).expect("the checker knows all names"))
            }
        };
        Node::Access(Box::new(Access { base, path: Vec::new(), test_only: false }))
    }
}

fn text_key(text: &str, declared: &Type) -> Key {
    let object = match declared {
        Type::Object(object) => Some(object),
        _ => None,
    };
    let field = object.and_then(|object| object.field_index(text));
    let object = object.filter(|_| field.is_some()).cloned();
    Key::Text { text: text.into(), object, field: field.unwrap_or(0) }
}

/// A constant that can be a list index or a map key.
fn constant_key(value: Val<'static>) -> Result<Val<'static>, EvalError> {
    match value {
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_) => Ok(value),
        other => {
            let name = super::fold::go_type(&other);
            Err(EvalError::new(format!("invalid qualifier type: {name}")))
        }
    }
}

/// Extends an access by a step.
fn extend(operand: Node, step: Step, test_only: bool) -> Node {
    let mut access = match operand {
        Node::Access(access) if !access.test_only => access,
        other => Box::new(Access { base: Base::Node(other), path: Vec::new(), test_only: false }),
    };
    access.path.push(step);
    access.test_only = test_only;
    Node::Access(access)
}

impl Access {
    /// Evaluates the access, with its whole cost.
    pub(super) fn eval<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Eval<'a> {
        let value = self.resolve(frame);
        // A presence test costs only its path, and so does an access to the result of a
        // conditional.
        let is_conditional = matches!(self.base, Base::Node(Node::Conditional(_)));
        frame.context.charge(u64::from(!is_conditional && !self.test_only))?;
        value
    }

    /// Evaluates the access, with the cost of its path only.
    pub(super) fn resolve<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Eval<'a> {
        let mut path = &self.path[..];
        let mut optional = false;
        let value = match &self.base {
            Base::Composed => {
                let Some((Step { key: Key::Text { text, .. }, optional: may_be_absent }, rest)) =
                    path.split_first()
                else {
                    return Err(EvalError::no_such_overload());
                };
                if self.test_only && rest.is_empty() {
                    return Ok(Val::Bool(true));
                }
                (path, optional) = (rest, *may_be_absent);
                let value = frame.composed(text);
                frame.context.charge(1)?;
                value?
            }
            Base::Variable(index) => frame.variable(*index)?,
            Base::Local(slot) => frame.local(*slot)?,
            Base::Node(node) => node.eval(frame)?,
        };
        if path.is_empty() {
            return Ok(if optional { Val::some(value) } else { value });
        }
        let mut value = match value {
            Val::Optional(None) if self.test_only => return Ok(Val::Bool(false)),
            Val::Optional(None) => return Ok(Val::none()),
            Val::Optional(Some(inner)) => {
                optional = true;
                (*inner).clone()
            }
            value => value,
        };
        for (at, step) in path.iter().enumerate() {
            optional |= step.optional;
            let test = self.test_only && at + 1 == path.len();
            let found = step.find(&value, optional || test, frame);
            let present = matches!(&found, Ok(Some(_)));
            // On an optional path, a step that finds nothing is not charged.
            if present || !optional {
                frame.context.charge(1)?;
            }
            match found? {
                Some(_) if test => return Ok(Val::Bool(true)),
                Some(found) => value = found,
                None if self.test_only => return Ok(Val::Bool(false)),
                None => return Ok(Val::none()),
            }
        }
        Ok(if optional { Val::some(value) } else { value })
    }
}

impl Step {
    /// Follows the step. Absence is an error unless `may_be_absent`.
    fn find<'a>(
        &'a self,
        value: &Val<'a>,
        may_be_absent: bool,
        frame: &mut Frame<'a, '_>,
    ) -> Result<Option<Val<'a>>, EvalError> {
        if let Val::List(list) = value {
            frame.context.work(u64::from(list.depth()))?;
        }
        match &self.key {
            Key::Text { text, object, field } => {
                if let (Some(object), Val::Map(map)) = (object, value)
                    && let Some(found) = map.known_field(object, *field)
                {
                    return present(found, may_be_absent, text);
                }
                let key = Val::String(Text::Borrowed(text));
                find(value, &key, may_be_absent)
            }
            Key::Constant(key) => find(value, key, may_be_absent),
            Key::Computed(node) => {
                let key = match node {
                    Node::Access(access) => access.resolve(frame)?,
                    node => node.eval(frame)?,
                };
                if let Val::String(text) = &key {
                    frame.context.read(text.len())?;
                }
                find(value, &key, may_be_absent)
            }
        }
    }
}

fn present<'a>(
    found: Option<Eval<'a>>,
    may_be_absent: bool,
    key: &str,
) -> Result<Option<Val<'a>>, EvalError> {
    match found {
        None if !may_be_absent => Err(EvalError::new(format!("no such key: {key}"))),
        found => found.transpose(),
    }
}

/// Looks up `key` in any value.
fn find<'a>(
    value: &Val<'a>,
    key: &Val<'a>,
    may_be_absent: bool,
) -> Result<Option<Val<'a>>, EvalError> {
    let found = match value {
        Val::Map(map) => map.get(key)?,
        Val::Made(made) => made.get(key, may_be_absent),
        Val::List(list) => {
            let index = list_index(key)?;
            let found = u64::try_from(index).ok().and_then(|index| list.get(index));
            return match found {
                None if !may_be_absent => {
                    Err(EvalError::new(format!("index out of bounds: {key}")))
                }
                // Lists of data only accept integers, although other numbers were evaluated as an
                // index.
                Some(_) if list.is_of_data() && !matches!(key, Val::Int(_)) => {
                    Err(EvalError::new(format!("unsupported index: {key}")))
                }
                found => found.transpose(),
            };
        }
        _ => None,
    };
    if found.is_none() && !may_be_absent {
        return Err(EvalError::new(format!("no such key: {key}")));
    }
    Ok(found)
}

/// The list index that a value denotes.
fn list_index(key: &Val<'_>) -> Result<i64, EvalError> {
    let index = match key {
        Val::Int(n) => Some(*n),
        Val::Uint(n) => i64::try_from(*n).ok(),
        Val::Double(n) => crate::number::to_int(*n).filter(|whole| *whole as f64 == *n),
        other => {
            let message = format!("unsupported index type '{}' in list", other.type_name());
            return Err(EvalError::new(message));
        }
    };
    index.ok_or_else(|| EvalError::new(format!("unsupported index value {key} in list")))
}

impl<'a> Map<'a> {
    /// The field of an object of this type; `None` for other maps.
    fn known_field(&self, object: &Object, field: usize) -> Option<Option<Eval<'a>>> {
        match self {
            Self::Tree { members, declared } => {
                let declared = declared.as_object()?;
                if !std::ptr::eq(declared, object) {
                    return None;
                }
                let field: &'a Field = declared.field_at(field);
                let value = members.get(field.name()).filter(|v| !v.is_null());
                Some(value.map(|value| lift(value, field.declaration())))
            }
            Self::Owned(_) => None,
        }
    }
}
