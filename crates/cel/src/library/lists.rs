//! Lists.

use std::collections::HashMap;
use std::sync::Arc;

use crate::context::Context;
use crate::declaration::Merge;
use crate::functions::Row;
use crate::value::{Eval, List, Val, identity, key_of};

pub(super) const FUNCTIONS: &[Row] = &[];

/// One list and another: behind one another, or merged, where the first is a set or has keys.
pub(super) fn add<'a>(a: &List<'a>, b: &List<'a>, context: &mut Context) -> Eval<'a> {
    let merge = a.merge();
    if *merge == Merge::Atomic {
        return Ok(Val::List(List::chain(a.clone(), b.clone())));
    }
    let tell = |item: &Val<'a>, context: &mut Context| match merge {
        Merge::Keys(keys) => key_of(item, keys, context),
        _ => identity(item, context),
    };
    context.work((a.len().saturating_add(b.len())).saturating_mul(16))?;
    let mut items: Vec<Val<'a>> = a.iter().collect::<Result<_, _>>()?;
    let mut known = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        known.insert(tell(item, context)?, at);
    }
    for item in b.iter() {
        let item = item?;
        let name = tell(&item, context)?;
        match known.get(&name) {
            // A set has the item; of two objects with the same keys the later one counts.
            Some(at) if matches!(merge, Merge::Keys(_)) => items[*at] = item,
            Some(_) => {}
            None => {
                known.insert(name, items.len());
                items.push(item);
            }
        }
    }
    Ok(Val::List(List::Owned { items: Arc::new(items), merge: Some(merge) }))
}
