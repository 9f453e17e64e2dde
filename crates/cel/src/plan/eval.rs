//! Evaluation of nodes, with their cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_value::Str;

use super::fold::{self, Local};
use super::{Invocation, Node};
use crate::bindings::{Bindings, Bound};
use crate::context::Context;
use crate::cost::Actual;
use crate::error::EvalError;
use crate::functions::{Guard, no_overload_of};
use crate::library;
use crate::types::declaration::Declaration;
use crate::value::{Eval, Key, Made, Map, Text, Val, lift};

/// Values that expressions use by name (`variables.NAME`), evaluated on first use.
pub(crate) trait NamedValues<'a>: std::fmt::Debug {
    /// The value of `name` for the expression with the index `before`; `None` if no earlier one has
    /// the name.
    fn get(&self, name: &str, before: usize, bindings: &Bindings<'a>) -> Option<Eval<'a>>;
}

/// The variables of an evaluation.
pub(crate) struct Frame<'a, 'c> {
    declared: &'a [(Str, Arc<Declaration>)],
    bindings: &'c Bindings<'a>,
    /// The named values, and the index of the expression among them.
    named: Option<(&'c dyn NamedValues<'a>, usize)>,
    locals: Vec<Local<'a>>,
    pub(crate) context: &'c mut Context,
}

impl<'a, 'c> Frame<'a, 'c> {
    pub(crate) fn new(
        declared: &'a [(Str, Arc<Declaration>)],
        bindings: &'c Bindings<'a>,
        slots: usize,
        context: &'c mut Context,
    ) -> Self {
        let locals = vec![Local::Known(Ok(Val::Null)); slots];
        Self { declared, bindings, named: None, locals, context }
    }

    /// Sets the named values, and the index of the expression among them.
    pub(crate) fn with_named(self, named: Option<(&'c dyn NamedValues<'a>, usize)>) -> Self {
        Self { named, ..self }
    }

    /// Charges the cost of a call.
    fn charge_call(
        &mut self,
        cost: Actual,
        args: &[Val<'a>],
        result: Option<&Val<'a>>,
    ) -> Result<(), EvalError> {
        let cost = cost.of_call(args, result, self.context)?;
        self.context.charge(cost)
    }

    /// The value of a named expression.
    pub(super) fn composed(&self, name: &str) -> Eval<'a> {
        let found = self.named.and_then(|(all, before)| all.get(name, before, self.bindings));
        found.unwrap_or_else(|| Err(EvalError::new(format!("no such key: {name}"))))
    }

    /// A variable's value, read by its declaration. Reading it again is as fast as copying a value.
    pub(super) fn variable(&self, index: usize) -> Eval<'a> {
        match (self.bindings.get(index), self.declared.get(index).map(|(_, d)| &**d)) {
            (Some(Bound::Tree(value)), Some(declaration)) => lift(value, declaration),
            (Some(Bound::Value(value)), _) => Ok(value.clone()),
            (None, Some(Declaration::Optional(_))) => Ok(Val::none()),
            _ => Err(EvalError::new("no such attribute(s)")),
        }
    }

    pub(super) fn local(&mut self, slot: usize) -> Eval<'a> {
        if let Local::Lazy(node) = self.locals[slot] {
            let value = node.eval(self);
            self.locals[slot] = Local::Known(value);
        }
        match &self.locals[slot] {
            Local::Known(value) => value.clone(),
            Local::Lazy(_) => Err(EvalError::no_such_overload()),
        }
    }

    pub(super) fn set(&mut self, slot: usize, local: Local<'a>) {
        self.locals[slot] = local;
    }

    /// Moves a local's value out, to modify it in place.
    pub(super) fn take(&mut self, slot: usize) -> Eval<'a> {
        if let Local::Lazy(_) = self.locals[slot] {
            self.local(slot)?;
        }
        match std::mem::replace(&mut self.locals[slot], Local::Known(Ok(Val::Null))) {
            Local::Known(value) => value,
            Local::Lazy(_) => Err(EvalError::no_such_overload()),
        }
    }
}

impl Node {
    pub(crate) fn eval<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Eval<'a> {
        match self {
            Self::Constant(Val::String(text)) => Ok(Val::String(Text::Borrowed(text))),
            Self::Constant(value) => Ok(value.clone()),
            Self::Access(access) => access.eval(frame),
            Self::And(operands) => logic(operands, false, frame),
            Self::Or(operands) => logic(operands, true, frame),
            Self::Conditional(parts) => conditional(parts, frame),
            Self::Equal { operands, negated, cost } => {
                let [a, b] = both(operands, *cost, frame)?;
                let equal = a.equals(&b, frame.context);
                frame.context.charge(cost.of_pair(&a, &b))?;
                match equal {
                    Err(error) if *negated && !error.is_cancelled() => Ok(Val::Bool(true)),
                    equal => Ok(Val::Bool(equal? != *negated)),
                }
            }
            Self::NotStrictlyFalse(operand) => {
                let value = operand.eval(frame);
                frame.context.charge(1)?;
                match value {
                    Ok(Val::Bool(b)) => Ok(Val::Bool(b)),
                    Err(error) if error.is_cancelled() => Err(error),
                    _ => Ok(Val::Bool(true)),
                }
            }
            Self::Call(call) => call.eval(frame),
            Self::Match { pattern, call } => {
                let args = call.many(&call.args, frame)?;
                let value = library::regex::with(pattern, call.function.name, &args, frame.context);
                call.charge(&args, &value, frame)?;
                value
            }
            Self::In(item, list) => {
                let item = item.eval(frame)?;
                let Val::List(list) = list else { return Err(EvalError::no_such_overload()) };
                library::operators::contains(list, &item, frame.context).map(Val::Bool)
            }
            Self::OptionalOr { operands, unwrap } => optional_or(operands, *unwrap, frame),
            Self::List(items) => list(items, frame),
            Self::Map(entries) => map(entries, frame),
            Self::Make(name, fields) => make(name, fields, frame),
            Self::Fold(fold) => fold.eval(frame),
            Self::Push { slot, item } => fold::push(*slot, item, frame),
            Self::Insert { slot, entry } => fold::insert(*slot, entry, frame),
        }
    }
}

/// Evaluates both operands, even if the first fails. An error costs as much as a scalar.
fn both<'a>(
    operands: &'a [Node; 2],
    cost: Actual,
    frame: &mut Frame<'a, '_>,
) -> Result<[Val<'a>; 2], EvalError> {
    let a = operands[0].eval(frame);
    if let Err(error) = &a
        && error.is_cancelled()
    {
        return Err(error.clone());
    }
    match (a, operands[1].eval(frame)) {
        (Ok(a), Ok(b)) => Ok([a, b]),
        (a, b) => {
            let scalar = |operand: &Eval<'a>| operand.clone().unwrap_or(Val::Null);
            frame.charge_call(cost, &[scalar(&a), scalar(&b)], None)?;
            Err(a.err().or(b.err()).unwrap_or_else(EvalError::no_such_overload))
        }
    }
}

/// Evaluates `&&` or `||`: one operand can decide the result, even if the other one fails.
fn logic<'a>(operands: &'a [Node; 2], decides: bool, frame: &mut Frame<'a, '_>) -> Eval<'a> {
    let mut wrong = None;
    for operand in operands {
        match operand.eval(frame) {
            Ok(Val::Bool(b)) if b == decides => return Ok(Val::Bool(decides)),
            Ok(Val::Bool(_)) => {}
            Err(error) if error.is_cancelled() => return Err(error),
            Err(error) => wrong = wrong.or(Some(error)),
            Ok(_) => wrong = wrong.or_else(|| Some(EvalError::no_such_overload())),
        }
    }
    match wrong {
        Some(error) => Err(error),
        None => Ok(Val::Bool(!decides)),
    }
}

/// Evaluates `? :`. A branch that is an access only costs its path.
fn conditional<'a>(parts: &'a [Node; 3], frame: &mut Frame<'a, '_>) -> Eval<'a> {
    let [condition, truthy, falsy] = parts;
    let branch = match condition.eval(frame)? {
        Val::Bool(true) => truthy,
        Val::Bool(false) => falsy,
        _ => return Err(EvalError::no_such_overload()),
    };
    match branch {
        Node::Access(access) => access.resolve(frame),
        node => node.eval(frame),
    }
}

fn optional_or<'a>(operands: &'a [Node; 2], unwrap: bool, frame: &mut Frame<'a, '_>) -> Eval<'a> {
    match operands[0].eval(frame)? {
        Val::Optional(Some(inner)) if unwrap => Ok((*inner).clone()),
        Val::Optional(None) => operands[1].eval(frame),
        value => Ok(value),
    }
}

/// The value that an optional item or entry inserts, if any.
fn put_in<'a>(
    value: Val<'a>,
    optional: bool,
    what: impl FnOnce() -> String,
) -> Result<Option<Val<'a>>, EvalError> {
    match value {
        value if !optional => Ok(Some(value)),
        Val::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
        other => {
            let what = what();
            let message = format!("cannot initialize optional {what} from non-optional value");
            Err(EvalError::new(format!("{message} {other}")))
        }
    }
}

/// Evaluates a list literal, which has its cost even if an item fails.
fn list<'a>(items: &'a [(Node, bool)], frame: &mut Frame<'a, '_>) -> Eval<'a> {
    let list = made_list(items, frame);
    frame.context.charge(10)?;
    list
}

fn made_list<'a>(items: &'a [(Node, bool)], frame: &mut Frame<'a, '_>) -> Eval<'a> {
    let mut out = Vec::with_capacity(items.len());
    for (item, optional) in items {
        let value = item.eval(frame)?;
        out.extend(put_in(value, *optional, || "list element".to_owned())?);
    }
    Ok(Val::list(out))
}

/// Evaluates a map literal, which has its cost even if a key or value fails.
fn map<'a>(entries: &'a [(Node, Node, bool)], frame: &mut Frame<'a, '_>) -> Eval<'a> {
    let map = made_map(entries, frame);
    frame.context.charge(30)?;
    map
}

fn made_map<'a>(entries: &'a [(Node, Node, bool)], frame: &mut Frame<'a, '_>) -> Eval<'a> {
    let mut out = BTreeMap::new();
    for (key, value, optional) in entries {
        let key = key.eval(frame)?;
        let value = value.eval(frame)?;
        let value = put_in(value, *optional, || format!("entry '{key}'"))?;
        let unsupported = || EvalError::new("unsupported key type");
        let key = Key::new(key).ok_or_else(unsupported)?;
        match value {
            Some(value) => out.insert(key, value),
            None => out.remove(&key),
        };
    }
    Ok(Val::Map(Map::Owned(Arc::new(out))))
}

/// Evaluates a struct literal, which has its cost even if a field fails.
fn make<'a>(
    name: &Arc<str>,
    fields: &'a [(Arc<str>, Node, bool)],
    frame: &mut Frame<'a, '_>,
) -> Eval<'a> {
    let made = made(name, fields, frame);
    frame.context.charge(40)?;
    made
}

fn made<'a>(
    name: &Arc<str>,
    fields: &'a [(Arc<str>, Node, bool)],
    frame: &mut Frame<'a, '_>,
) -> Eval<'a> {
    let mut out = BTreeMap::new();
    for (field, value, optional) in fields {
        let value = value.eval(frame)?;
        match put_in(value, *optional, || format!("entry '{field}'"))? {
            Some(value) => out.insert(Arc::clone(field), value),
            None => out.remove(field),
        };
    }
    Ok(Val::Made(Arc::new(Made::new(Arc::clone(name), out)?)))
}

impl Invocation {
    fn eval<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Eval<'a> {
        let args = self.args(frame)?;
        let value = self.invoke(&args, frame);
        self.charge(&args, &value, frame)?;
        value
    }

    fn args<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Result<Args<'a>, EvalError> {
        match &self.args[..] {
            [] => Ok(Args::None),
            [one] => match one.eval(frame) {
                Ok(one) => Ok(Args::One([one])),
                Err(error) => {
                    frame.charge_call(self.cost, &[Val::Null], None)?;
                    Err(error)
                }
            },
            more => {
                if let Ok(two) = <&[Node; 2]>::try_from(more) {
                    return both(two, self.cost, frame).map(Args::Two);
                }
                self.many(more, frame).map(Args::More)
            }
        }
    }

    /// Evaluates arguments in order. If an argument before the last fails, the arguments after it
    /// are not evaluated, and the call has no cost.
    fn many<'a>(
        &self,
        args: &'a [Node],
        frame: &mut Frame<'a, '_>,
    ) -> Result<Vec<Val<'a>>, EvalError> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            match arg.eval(frame) {
                Ok(value) => values.push(value),
                Err(error) => {
                    values.push(Val::Null);
                    if values.len() == args.len() {
                        frame.charge_call(self.cost, &values, None)?;
                    }
                    return Err(error);
                }
            }
        }
        Ok(values)
    }

    fn invoke<'a>(&self, args: &[Val<'a>], frame: &mut Frame<'a, '_>) -> Eval<'a> {
        let function = self.function;
        if function.guard == Guard::Typed && !self.overloads.iter().any(|o| o.fits(args)) {
            return Err(no_overload_of(function.name, args));
        }
        for arg in args {
            if let Val::String(text) = arg {
                frame.context.read(text.len())?;
            }
        }
        frame.context.overload = self.overloads.first().map_or("", |overload| overload.id);
        (function.native)(frame.context, args)
    }

    fn charge<'a>(
        &self,
        args: &[Val<'a>],
        value: &Eval<'a>,
        frame: &mut Frame<'a, '_>,
    ) -> Result<(), EvalError> {
        // Computing the cost of a cancelled call could take as long as the call itself.
        if let Err(error) = value
            && error.is_cancelled()
        {
            return Err(error.clone());
        }
        frame.charge_call(self.cost, args, value.as_ref().ok())
    }
}

/// Argument values; up to two are stored inline.
enum Args<'a> {
    None,
    One([Val<'a>; 1]),
    Two([Val<'a>; 2]),
    More(Vec<Val<'a>>),
}

impl<'a> std::ops::Deref for Args<'a> {
    type Target = [Val<'a>];

    fn deref(&self) -> &[Val<'a>] {
        match self {
            Self::None => &[],
            Self::One(args) => args,
            Self::Two(args) => args,
            Self::More(args) => args,
        }
    }
}

impl Val<'_> {
    /// Converts a constant to a value without borrows; constants are built from constants only.
    pub(super) fn into_static(self) -> Val<'static> {
        match self {
            Self::Null => Val::Null,
            Self::Bool(b) => Val::Bool(b),
            Self::Int(n) => Val::Int(n),
            Self::Uint(n) => Val::Uint(n),
            Self::Double(n) => Val::Double(n),
            Self::String(text) => Val::String(Text::Shared((&*text).into())),
            Self::Bytes(bytes) => Val::Bytes(bytes),
            Self::Timestamp(t) => Val::Timestamp(t),
            Self::Duration(nanos) => Val::Duration(nanos),
            Self::Type(name) => Val::Type(name),
            Self::List(list) => {
                Val::list(list.iter().filter_map(Result::ok).map(Val::into_static).collect())
            }
            Self::Map(map) => {
                let entries = map.entries().unwrap_or_default().into_iter();
                let entries = entries.filter_map(|(key, value)| {
                    Some((Key::new(key.into_static())?, value.into_static()))
                });
                Val::Map(Map::Owned(Arc::new(entries.collect())))
            }
            Self::Optional(inner) => {
                Val::Optional(inner.map(|inner| Arc::new((*inner).clone().into_static())))
            }
            Self::Opaque(opaque) => Val::Opaque(opaque),
            Self::Made(made) => {
                let fields = made.fields.iter().map(|(k, v)| (k.clone(), v.clone().into_static()));
                let type_name = made.type_name.clone();
                Val::Made(Arc::new(Made { type_name, fields: fields.collect() }))
            }
        }
    }
}
