//! What an evaluation may still spend.

use std::sync::Arc;

use crate::error::EvalError;
use crate::pattern::Pattern;

/// The cost that upstream lets one evaluation have.
pub const COST_MAX: u64 = 1_000_000;

/// The most work of one evaluation beside its cost: visited items, and bytes that are made.
const WORK_MAX: u64 = 64_000_000;

/// So many bytes are read in the time that one takes to be made.
const READ: u64 = 16;

/// What evaluations may cost, and what they did. Where several share one budget, each takes from it.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// So much cost.
    pub const fn new(cost: u64) -> Self {
        Self { left: cost }
    }

    /// What is left.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Takes `cost`; tells whether there was so much.
    pub fn spend(&mut self, cost: u64) -> bool {
        let enough = cost <= self.left;
        self.left = self.left.saturating_sub(cost);
        enough
    }
}

/// The cost of the evaluation that is going on.
///
/// Upstream reckons the cost of a call when it is done; where a call could do much before (a list of
/// all numbers up to 2^60), work is bounded beforehand.
#[derive(Debug)]
pub(crate) struct Context {
    cost: u64,
    limit: u64,
    work: u64,
    /// The pattern that was compiled last: in a loop, it is mostly the same.
    pub(crate) pattern: Option<(Box<str>, Arc<Pattern>)>,
    /// The first of the overloads that the function being called may be, for functions whose result
    /// depends on declared types where there are no values.
    pub(crate) overload: &'static str,
}

impl Context {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { cost: 0, limit, work: 0, pattern: None, overload: "" }
    }

    /// Reckons `cost`.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// Says that `amount` items or bytes are going to be visited or made.
    pub(crate) fn work(&mut self, amount: u64) -> Result<(), EvalError> {
        self.work = self.work.saturating_add(amount);
        if self.work > WORK_MAX { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// Says that so many bytes are going to be read, whatever upstream reckons for it.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), EvalError> {
        if bytes < READ as usize { Ok(()) } else { self.work(bytes as u64 / READ) }
    }

    /// Says that a list of `items` is going to be made, each of which costs one when it is done.
    pub(crate) fn make(&mut self, items: u64) -> Result<(), EvalError> {
        if items > self.limit.saturating_sub(self.cost) {
            return Err(EvalError::cost());
        }
        self.work(items.saturating_mul(8))
    }

    pub(crate) const fn cost(&self) -> u64 {
        self.cost
    }
}
