//! The executable form of an expression: names are resolved, functions bound and constants folded.
//!
//! Invariant: the plan folds exactly the parts that upstream folds, because folded parts have no
//! cost at evaluation.

mod access;
mod eval;
mod fold;

use std::sync::Arc;

use crate::allowance::Allowance;
use crate::ast::{Call, Comprehension, Entry, Expr, Field, Item, Kind, Struct};
use crate::bindings::Bindings;
use crate::checker::{Checked, Reference};
use crate::context::Context;
use crate::cost::Actual;
use crate::error::EvalError;
use crate::functions::{Function, Overload};
use crate::pattern::Pattern;
use crate::value::{Val, constant};

pub(crate) use access::Access;
pub(crate) use eval::{Frame, NamedValues};

/// A node of a plan.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Val<'static>),
    /// A variable, or a part of a variable or of another value.
    Access(Box<Access>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Conditional(Box<[Node; 3]>),
    /// `==`, or `!=` if negated.
    Equal {
        operands: Box<[Node; 2]>,
        negated: bool,
        cost: Actual,
    },
    NotStrictlyFalse(Box<Node>),
    Call(Box<Invocation>),
    /// A match against a precompiled pattern.
    Match {
        pattern: Arc<Pattern>,
        call: Box<Invocation>,
    },
    /// `x in [constants]`, which upstream turns into a lookup without cost.
    In(Box<Node>, Val<'static>),
    /// `optional.or(other)`, or `orValue`.
    OptionalOr {
        operands: Box<[Node; 2]>,
        unwrap: bool,
    },
    List(Box<[(Node, bool)]>),
    Map(Box<[(Node, Node, bool)]>),
    /// An object or patch, by the name of its type.
    Make(Arc<str>, Box<[(Arc<str>, Node, bool)]>),
    Fold(Box<fold::Fold>),
    /// Appends an item to the accumulator of a loop.
    Push {
        slot: usize,
        item: Box<Node>,
    },
    /// Adds an entry, or the entries of a map, to the accumulator of a loop.
    Insert {
        slot: usize,
        entry: Box<[Node]>,
    },
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) function: &'static Function,
    /// The candidate overloads.
    pub(crate) overloads: Box<[&'static Overload]>,
    pub(crate) args: Box<[Node]>,
    pub(crate) cost: Actual,
}

/// A plan with its number of local variables.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    pub(crate) slots: usize,
    /// The values of a composition that may be used.
    pub(crate) used_values: Vec<Box<str>>,
}

/// Plans a checked expression.
pub(crate) fn plan(
    root: &Expr,
    checked: &Checked,
    composed: Option<usize>,
    allowance: &mut Allowance,
) -> Result<Plan, EvalError> {
    let used_values = Vec::new();
    let (scopes, slots, room) = (Vec::new(), 0, Pattern::ROOM);
    let mut planner = Planner { checked, composed, used_values, scopes, slots, room };
    let root = planner.plan(root);
    allowance.spend_room(planner.room);
    let root = root?;
    Ok(Plan { root, slots: planner.slots, used_values: planner.used_values })
}

struct Planner<'a> {
    checked: &'a Checked,
    /// The variable that is a composition.
    composed: Option<usize>,
    used_values: Vec<Box<str>>,
    /// Local variables and their slots, innermost last.
    scopes: Vec<(Arc<str>, usize)>,
    slots: usize,
    /// The memory left for constant patterns.
    room: usize,
}

type Planned = Result<Node, EvalError>;

impl Planner<'_> {
    fn plan(&mut self, expr: &Expr) -> Planned {
        match &expr.kind {
            Kind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Kind::Ident(_) | Kind::Select(_) => self.access(expr),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Comprehension(fold) => self.fold(fold),
            Kind::Struct(made) => self.make(made),
        }
    }

    /// The slot of a local variable.
    fn slot(&self, name: &str) -> Option<usize> {
        self.scopes.iter().rev().find(|(n, _)| &**n == name).map(|(_, slot)| *slot)
    }

    fn bind(&mut self, name: &Arc<str>) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scopes.push((Arc::clone(name), slot));
        slot
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Planned {
        let Some(Reference::Call { function, overloads, qualified }) = self.checked.reference(expr)
        else {
            return Err(EvalError::no_such_overload());
        };
        if matches!(function.name, "_[_]" | "_[?_]" | "_?._") {
            return self.access(expr);
        }
        let target = call.target.as_ref().filter(|_| !qualified);
        if let Some(node) = self.accumulate(function.name, &call.args)? {
            return Ok(node);
        }
        let args = target.into_iter().chain(&call.args).map(|arg| self.plan(arg));
        let args = args.collect::<Result<Vec<Node>, EvalError>>()?;
        let cost = Actual::rule(function.name, overloads);
        let args = match operator(function.name, args, cost) {
            Ok(node) => return Ok(node),
            Err(args) => args,
        };
        let overloads = overloads.clone();
        simplify(Invocation { function, overloads, args: args.into(), cost }, &mut self.room)
    }

    fn list(&mut self, items: &[Item]) -> Planned {
        let plan = |item: &Item| Ok((self.plan(&item.value)?, item.optional));
        let items = items.iter().map(plan).collect::<Result<Vec<_>, EvalError>>()?;
        let is_constant = items.iter().all(|(node, _)| matches!(node, Node::Constant(_)));
        let node = Node::List(items.into());
        if is_constant { folded(&node) } else { Ok(node) }
    }

    fn make(&mut self, made: &Struct) -> Planned {
        let plan = |f: &Field| Ok((f.name.clone(), self.plan(&f.value)?, f.optional));
        let fields = made.fields.iter().map(plan).collect::<Result<Vec<_>, EvalError>>()?;
        let name = made.name.strip_prefix('.').map_or_else(|| made.name.clone(), Arc::from);
        Ok(Node::Make(name, fields.into()))
    }

    fn map(&mut self, entries: &[Entry]) -> Planned {
        let plan = |e: &Entry| Ok((self.plan(&e.key)?, self.plan(&e.value)?, e.optional));
        let entries = entries.iter().map(plan).collect::<Result<Vec<_>, EvalError>>()?;
        let is_constant = |node: &Node| matches!(node, Node::Constant(_));
        let is_constant = entries.iter().all(|(k, v, _)| is_constant(k) && is_constant(v));
        let node = Node::Map(entries.into());
        if is_constant { folded(&node) } else { Ok(node) }
    }

    fn fold(&mut self, fold: &Comprehension) -> Planned {
        let init = self.plan(&fold.init)?;
        let range = self.plan(&fold.range)?;
        let depth = self.scopes.len();
        let accu = self.bind(&fold.accu);
        let var = self.bind(&fold.var);
        let var2 = fold.var2.as_ref().map(|var2| self.bind(var2));
        let condition = self.plan(&fold.condition)?;
        let step = self.plan(&fold.step)?;
        self.scopes.truncate(depth + 1);
        let result = self.plan(&fold.result)?;
        self.scopes.truncate(depth);
        let fold = fold::Fold { range, accu, init, var, var2, condition, step, result };
        Ok(Node::Fold(Box::new(fold)))
    }

    /// `@result + [item]` and its counterpart for maps modify the accumulator in place.
    fn accumulate(&mut self, function: &str, args: &[Expr]) -> Result<Option<Node>, EvalError> {
        let Some(accu) = args.first().and_then(Expr::as_ident) else { return Ok(None) };
        if &**accu != crate::ast::ACCU {
            return Ok(None);
        }
        let slot = self.slot(accu).expect("the checker knows all names");
        match (function, &args[1..]) {
            ("_+_", [Expr { kind: Kind::List(items), .. }]) => match &items[..] {
                [Item { value, optional: false }] => {
                    let item = Box::new(self.plan(value)?);
                    Ok(Some(Node::Push { slot, item }))
                }
                _ => Ok(None),
            },
            ("cel.@mapInsert", rest) => {
                let entry = rest.iter().map(|e| self.plan(e)).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(Node::Insert { slot, entry: entry.into() }))
            }
            _ => Ok(None),
        }
    }
}

/// Creates a dedicated node for operators that may skip operands, and for the most common ones.
fn operator(name: &str, args: Vec<Node>, cost: Actual) -> Result<Node, Vec<Node>> {
    if name == "_?_:_" {
        return <[Node; 3]>::try_from(args).map(|args| Node::Conditional(Box::new(args)));
    }
    if name == "@not_strictly_false" {
        let [arg] = <[Node; 1]>::try_from(args)?;
        return Ok(Node::NotStrictlyFalse(Box::new(arg)));
    }
    if !matches!(name, "_&&_" | "_||_" | "_==_" | "_!=_" | "or" | "orValue") {
        return Err(args);
    }
    let operands = Box::new(<[Node; 2]>::try_from(args)?);
    Ok(match name {
        "_&&_" => Node::And(operands),
        "_||_" => Node::Or(operands),
        "_==_" => Node::Equal { operands, negated: false, cost },
        "_!=_" => Node::Equal { operands, negated: true, cost },
        name => Node::OptionalOr { operands, unwrap: name == "orValue" },
    })
}

/// Functions whose calls with one constant are folded.
const CONVERSIONS: &[&str] =
    &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Optimizes calls with constants: conversions are folded, patterns compiled, lookups in lists
/// prepared.
fn simplify(call: Invocation, room: &mut usize) -> Planned {
    let name = call.function.name;
    if CONVERSIONS.contains(&name) && matches!(&call.args[..], [Node::Constant(_)]) {
        return folded(&Node::Call(Box::new(call)));
    }
    if matches!(name, "@in" | "in")
        && call.overloads.len() == 1
        && call.overloads[0].id == "in_list"
    {
        return Ok(look_up(call));
    }
    if matches!(name, "matches" | "find" | "findAll")
        && let Some(Node::Constant(Val::String(pattern))) = call.args.get(1)
    {
        let pattern = Pattern::new(pattern, Pattern::room(room))?;
        return Ok(Node::Match { pattern: Arc::new(pattern), call: Box::new(call) });
    }
    Ok(Node::Call(Box::new(call)))
}

/// Plans `x in [1, 2]` with constant scalars.
fn look_up(mut call: Invocation) -> Node {
    let Some(Node::Constant(Val::List(list))) = call.args.get(1) else {
        return Node::Call(Box::new(call));
    };
    if list.len() == 0 {
        return Node::Constant(Val::Bool(false));
    }
    let is_scalar = |v: &Val<'_>| {
        matches!(v, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_))
    };
    if !list.iter().all(|item| item.is_ok_and(|item| is_scalar(&item))) {
        return Node::Call(Box::new(call));
    }
    let list = Val::List(list.clone());
    let item = std::mem::replace(&mut call.args[0], Node::Constant(Val::Null));
    Node::In(Box::new(item), list)
}

/// Evaluates a node without variables.
fn folded(node: &Node) -> Planned {
    let mut context = Context::new(u64::MAX);
    let bindings = Bindings::new();
    let mut frame = Frame::new(&[], &bindings, 0, &mut context);
    let value = node.eval(&mut frame)?;
    Ok(Node::Constant(value.into_static()))
}
