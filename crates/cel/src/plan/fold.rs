//! Loops and name bindings.

use super::{Frame, Node};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::{Eval, Key, List, Map, Val};

/// A loop over a list or map. A loop over an empty list binds a name to a value, which is evaluated
/// on first use.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(super) range: Node,
    pub(super) accu: usize,
    pub(super) init: Node,
    pub(super) var: usize,
    pub(super) var2: Option<usize>,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

/// A local variable.
#[derive(Clone, Debug)]
pub(crate) enum Local<'a> {
    /// Not yet evaluated.
    Lazy(&'a Node),
    Known(Eval<'a>),
}

impl Fold {
    pub(super) fn eval<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Eval<'a> {
        let range = self.range.eval(frame)?;
        frame.set(self.accu, Local::Lazy(&self.init));
        match &range {
            Val::List(list) => self.over_list(list, frame)?,
            Val::Map(map) => self.over_map(map, frame)?,
            other if self.var2.is_some() => {
                let message = "unsupported comprehension range type: ";
                return Err(EvalError::new(format!("{message}{}", go_type(other))));
            }
            other => {
                let got = go_type(other);
                return Err(EvalError::new(format!("got '{got}', expected iterable type")));
            }
        }
        self.result.eval(frame)
    }

    fn over_list<'a>(
        &'a self,
        list: &List<'a>,
        frame: &mut Frame<'a, '_>,
    ) -> Result<(), EvalError> {
        for index in 0..list.len() {
            frame.context.work(u64::from(list.depth()))?;
            let Some(item) = list.get(index) else { break };
            match self.var2 {
                None => frame.set(self.var, Local::Known(item)),
                Some(var2) => {
                    frame.set(self.var, Local::Known(Ok(Val::Int(index as i64))));
                    frame.set(var2, Local::Known(item));
                }
            }
            if !self.iterate(frame)? {
                break;
            }
        }
        Ok(())
    }

    fn over_map<'a>(&'a self, map: &Map<'a>, frame: &mut Frame<'a, '_>) -> Result<(), EvalError> {
        frame.context.work(map.len() as u64)?;
        for key in map.keys() {
            if let Some(var2) = self.var2 {
                let value = map.get(&key).map(|value| value.unwrap_or(Val::Null));
                frame.set(var2, Local::Known(value));
            }
            frame.set(self.var, Local::Known(Ok(key)));
            if !self.iterate(frame)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one iteration; returns whether to continue. An error becomes the accumulator's value,
    /// which a later iteration may absorb.
    fn iterate<'a>(&'a self, frame: &mut Frame<'a, '_>) -> Result<bool, EvalError> {
        frame.context.work(1)?;
        match self.condition.eval(frame) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(error) if error.is_cancelled() => return Err(error),
            _ => {}
        }
        let value = self.step.eval(frame);
        if let Err(error) = &value
            && error.is_cancelled()
        {
            return value.map(|_| false);
        }
        frame.set(self.accu, Local::Known(value));
        Ok(true)
    }
}

/// Appends an item to the accumulator. The item is evaluated first, because it can only refer to
/// the accumulator of an outer loop.
pub(super) fn push<'a>(slot: usize, item: &'a Node, frame: &mut Frame<'a, '_>) -> Eval<'a> {
    frame.context.charge(1)?;
    let is_constant = matches!(item, Node::Constant(_));
    let value = item.eval(frame);
    // The cost of the list of one item, unless it is folded, and of the addition.
    frame.context.charge(if is_constant { 1 } else { 11 })?;
    let accu = frame.take(slot)?;
    match accu {
        Val::List(List::Owned { mut items, merge }) => {
            std::sync::Arc::make_mut(&mut items).push(value?);
            Ok(Val::List(List::Owned { items, merge }))
        }
        other => {
            value?;
            Ok(other)
        }
    }
}

/// Adds an entry (key and value), or the entries of a map, to the accumulator.
pub(super) fn insert<'a>(slot: usize, entry: &'a [Node], frame: &mut Frame<'a, '_>) -> Eval<'a> {
    frame.context.charge(1)?;
    let entry: Result<Vec<Val<'a>>, EvalError> = entry.iter().map(|e| e.eval(frame)).collect();
    frame.context.charge(1)?;
    let accu = frame.take(slot)?;
    let Val::Map(Map::Owned(mut entries)) = accu else { return Ok(accu) };
    let into = std::sync::Arc::make_mut(&mut entries);
    match <[Val<'a>; 2]>::try_from(entry?) {
        Ok([key, value]) => add(into, key, value)?,
        Err(one) => {
            let Some(Val::Map(map)) = one.into_iter().next() else {
                return Err(EvalError::no_such_overload());
            };
            for (key, value) in more(&map, frame.context)? {
                add(into, key, value)?;
            }
        }
    }
    Ok(Val::Map(Map::Owned(entries)))
}

fn more<'a>(map: &Map<'a>, context: &mut Context) -> Result<Vec<(Val<'a>, Val<'a>)>, EvalError> {
    context.work(map.len() as u64)?;
    map.entries()
}

fn add<'a>(
    into: &mut crate::value::Owned<'a>,
    key: Val<'a>,
    value: Val<'a>,
) -> Result<(), EvalError> {
    let message = || EvalError::new(format!("insert failed: key {key} already exists"));
    let map_key = Key::new(key.clone()).ok_or_else(EvalError::no_such_overload)?;
    if into.contains_key(&map_key) {
        return Err(message());
    }
    into.insert(map_key, value);
    Ok(())
}

/// Go's name of a value's type.
pub(super) fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::String(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Timestamp(_) => "types.Timestamp",
        Val::Duration(_) => "types.Duration",
        Val::Type(_) => "*types.Type",
        Val::Optional(_) => "*types.Optional",
        other => other.type_name(),
    }
}
