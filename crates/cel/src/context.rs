//! The budget of evaluations.

use std::sync::Arc;

use crate::error::EvalError;
use crate::pattern::Pattern;

/// The maximum cost of one evaluation in upstream.
pub const COST_MAX: u64 = 1_000_000;

/// The maximum work of one evaluation in addition to its cost: visited items, and bytes that are
/// produced.
const WORK_MAX: u64 = 64_000_000;

/// The number of bytes that are read in the time in which one byte is produced.
const READ: u64 = 16;

/// A budget of cost. Several evaluations can share one.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of this cost.
    pub const fn new(cost: u64) -> Self {
        Self { left: cost }
    }

    /// The remaining cost.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Spends `cost`. Returns whether the budget covered it.
    pub fn spend(&mut self, cost: u64) -> bool {
        let enough = cost <= self.left;
        self.left = self.left.saturating_sub(cost);
        enough
    }
}

/// The cost of the running evaluation.
///
/// Upstream charges the cost of a call after the call has returned. Until then, the call can do
/// much work (make a list of all numbers up to 2^60), so this server also bounds the work in
/// advance.
#[derive(Debug)]
pub(crate) struct Context {
    cost: u64,
    limit: u64,
    work: u64,
    /// The pattern that was compiled last; in a loop, it is usually the same.
    pub(crate) pattern: Option<(Box<str>, Arc<Pattern>)>,
    /// The first candidate overload of the function being called, for functions whose result
    /// depends on declared types without having values.
    pub(crate) overload: &'static str,
}

impl Context {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { cost: 0, limit, work: 0, pattern: None, overload: "" }
    }

    /// Adds `cost`.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// Accounts for `amount` items or bytes that will be visited or produced.
    pub(crate) fn work(&mut self, amount: u64) -> Result<(), EvalError> {
        self.work = self.work.saturating_add(amount);
        if self.work > WORK_MAX { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// Accounts for bytes that will be read, in addition to upstream's cost.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), EvalError> {
        if bytes < READ as usize { Ok(()) } else { self.work(bytes as u64 / READ) }
    }

    /// Accounts for a list of `items` that will be produced; each costs one afterwards.
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
