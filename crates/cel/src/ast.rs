//! The syntax tree of an expression, with macros expanded.

use std::sync::Arc;

use pintle_value::Str;

/// The id of a node. The nodes of an expression are numbered from 0, and tables of later phases are
/// indexed by id.
pub(crate) type Id = u32;

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    /// The position of the node in the text: its operator, parenthesis or first token.
    pub(crate) at: u32,
    pub(crate) kind: Kind,
}

/// The kind of a node.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    /// A variable; a leading dot means the root scope.
    Ident(Arc<str>),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Item>),
    Map(Vec<Entry>),
    Struct(Box<Struct>),
    Comprehension(Box<Comprehension>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Str),
    Bytes(Arc<[u8]>),
}

/// `operand.field`, or `has(operand.field)`.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: Arc<str>,
    pub(crate) test_only: bool,
}

/// An operator, a function or a method.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: Arc<str>,
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
}

/// An item of a list; `[?x]` inserts the value of an optional, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// An entry of a map; `{?k: x}` inserts the value of an optional, if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// `Name{field: value}`.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) at: u32,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A fold over a list or map, to which macros expand.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) var: Arc<str>,
    /// The second variable of two-variable macros: the value besides the key or index.
    pub(crate) var2: Option<Arc<str>>,
    pub(crate) accu: Arc<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// The accumulator variable of macros.
pub(crate) const ACCU: &str = "@result";

/// The former name of the accumulator, which still cannot be a loop variable.
pub(crate) const ACCU_OLD: &str = "__result__";

impl Expr {
    pub(crate) fn as_ident(&self) -> Option<&Arc<str>> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn as_literal(&self) -> Option<&Literal> {
        match &self.kind {
            Kind::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// The dotted name of an expression such as `a.b.c`.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select(select) if !select.test_only => {
                let prefix = select.operand.qualified_name()?;
                Some(format!("{prefix}.{}", select.field))
            }
            _ => None,
        }
    }
}

impl Comprehension {
    /// Whether this binds a name to a value (`optMap` etc.) instead of looping.
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.range.kind, Kind::List(items) if items.is_empty())
            && matches!(self.condition.as_literal(), Some(Literal::Bool(false)))
            && &*self.accu != ACCU_OLD
    }
}
