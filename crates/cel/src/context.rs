//! The budget of evaluations.

use std::sync::Arc;

use crate::error::EvalError;
use crate::pattern::Pattern;

/// The maximum cost of one evaluation in upstream.
pub const COST_MAX: u64 = 1_000_000;

/// The maximum work of one evaluation in addition to its cost: visited items, and bytes that are
/// produced.
const WORK_MAX: u64 = 64_000_000;

/// The maximum work of all evaluations that share a budget.
const SHARED_WORK_MAX: u64 = 4 * WORK_MAX;

/// The number of bytes that are read in the time in which one byte is produced.
const READ: u64 = 16;

/// The work of visiting one of the values that others consist of.
const VISIT: u64 = 16;

/// The work of producing a value of data.
const VALUE: u64 = 32;

/// The number of patterns that evaluations with one budget keep compiled.
const PATTERNS_MAX: usize = 8;

/// A budget of cost. Several evaluations can share one.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
    shared: Shared,
}

/// What evaluations that share a budget have in common besides the cost.
#[derive(Clone, Debug, Default)]
struct Shared {
    work: u64,
    /// The computed patterns that were used last, the last one at the end. In a loop, or for the
    /// items of a list, it is usually the same.
    patterns: Vec<(Box<str>, Compiled)>,
}

/// A pattern, or why it is invalid.
pub(crate) type Compiled = Result<Arc<Pattern>, EvalError>;

impl Budget {
    /// A budget of this cost.
    pub const fn new(cost: u64) -> Self {
        Self { left: cost, shared: Shared { work: 0, patterns: Vec::new() } }
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

    /// Begins an evaluation, limited by the budget and by upstream's limit for one evaluation.
    pub(crate) fn begin(&mut self) -> Context {
        let shared = std::mem::take(&mut self.shared);
        Context { shared, ..Context::new(self.left.min(COST_MAX)) }
    }

    /// Ends an evaluation that began with [`Self::begin`]. Returns whether the budget covered it.
    pub(crate) fn end(&mut self, context: Context) -> bool {
        self.shared = context.shared;
        self.spend(context.cost)
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
    shared: Shared,
    /// The first candidate overload of the function being called, for functions whose result
    /// depends on declared types without having values.
    pub(crate) overload: &'static str,
}

impl Context {
    pub(crate) fn new(limit: u64) -> Self {
        Self { cost: 0, limit, work: 0, shared: Shared::default(), overload: "" }
    }

    /// Continues after evaluations that did this work and share a limit with this one.
    pub(crate) fn after(mut self, work: u64) -> Self {
        self.shared.work = work;
        self
    }

    /// Adds `cost`.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// Accounts for `amount` items or bytes that will be visited or produced.
    pub(crate) fn work(&mut self, amount: u64) -> Result<(), EvalError> {
        self.work = self.work.saturating_add(amount);
        self.shared.work = self.shared.work.saturating_add(amount);
        let exceeds = self.work > WORK_MAX || self.shared.work > SHARED_WORK_MAX;
        if exceeds { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// Accounts for a value that will be visited.
    pub(crate) fn visit(&mut self) -> Result<(), EvalError> {
        self.work(VISIT)
    }

    /// Accounts for a value of data that will be produced.
    pub(crate) fn value(&mut self) -> Result<(), EvalError> {
        self.work(VALUE)
    }

    /// The work of this evaluation.
    pub(crate) const fn worked(&self) -> u64 {
        self.work
    }

    /// The cost that is left.
    pub(crate) const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.cost)
    }

    /// Returns the result of compiling a pattern if it is still known.
    pub(crate) fn known_pattern(&mut self, pattern: &str) -> Option<Compiled> {
        let patterns = &mut self.shared.patterns;
        let at = patterns.iter().rposition(|(known, _)| **known == *pattern)?;
        let used = patterns.remove(at);
        let compiled = used.1.clone();
        patterns.push(used);
        Some(compiled)
    }

    /// Stores the result of compiling a pattern in place of the one that was used least recently.
    pub(crate) fn keep_pattern(&mut self, pattern: &str, compiled: Compiled) {
        let patterns = &mut self.shared.patterns;
        if patterns.len() >= PATTERNS_MAX {
            drop(patterns.remove(0));
        }
        patterns.push((pattern.into(), compiled));
    }

    /// Accounts for bytes that will be read, in addition to upstream's cost.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), EvalError> {
        if bytes < READ as usize { Ok(()) } else { self.work(bytes as u64 / READ) }
    }

    /// Accounts for a list of `items` that will be produced; each costs one afterwards.
    pub(crate) fn make(&mut self, items: u64) -> Result<(), EvalError> {
        if items > self.left() {
            return Err(EvalError::cost());
        }
        self.work(items.saturating_mul(8))
    }

    pub(crate) const fn cost(&self) -> u64 {
        self.cost
    }
}
