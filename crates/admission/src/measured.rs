//! Measures the duration of plugins as upstream does: once for each write that a plugin's handler
//! accepts, in its phase of admission, whether or not the write concerns it.

use std::sync::Arc;
use std::time::Instant;

use pintle_meta::{Status, field::Errors};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Memory, Mutated, Operation, Waited};
use pintle_registry::allocation::Companion;
use pintle_registry::measures::{Phase, PhaseDurations};
use pintle_value::Value;

use crate::Measures;
use crate::rows::Row;

/// The hooks of a plugin that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    BeforeMutation,
    Mutate,
    MutateRegistered,
    Validate,
    BeforeCommit,
    ValidateRegistered,
}

impl Hook {
    const ALL: [Self; 6] = [
        Self::BeforeMutation,
        Self::Mutate,
        Self::MutateRegistered,
        Self::Validate,
        Self::BeforeCommit,
        Self::ValidateRegistered,
    ];

    /// The phase of admission in which it is called.
    pub(crate) const fn phase(self) -> Phase {
        match self {
            Self::BeforeMutation | Self::Mutate | Self::MutateRegistered => Phase::Admit,
            Self::Validate | Self::BeforeCommit | Self::ValidateRegistered => Phase::Validate,
        }
    }
}

/// A plugin with measured hooks.
pub(crate) struct Measured {
    inner: Box<dyn Admission>,
    /// The index of its row for each phase of admission: two rows if two of upstream's plugins are
    /// one here.
    rows: [usize; 2],
    /// A bit for each hook and operation that is measured ([`bit`]).
    timed: u32,
    measures: Arc<Measures>,
}

/// The bit of a hook and an operation.
const fn bit(hook: Hook, operation: Operation) -> u32 {
    1 << (hook as u32 * Operation::ALL.len() as u32 + operation as u32)
}

impl Measured {
    /// Measures the plugin of a row.
    pub(crate) fn new(
        row: &'static Row,
        inner: Box<dyn Admission>,
        measures: &Arc<Measures>,
    ) -> Self {
        Self::of_two([Some(row); 2], inner, measures)
    }

    /// Measures a plugin that is two of upstream's: one in each phase.
    pub(crate) fn of_two(
        rows: [Option<&'static Row>; 2],
        inner: Box<dyn Admission>,
        measures: &Arc<Measures>,
    ) -> Self {
        let row_of = |hook: Hook| rows[hook.phase() as usize];
        let mut timed = 0;
        for hook in Hook::ALL {
            for operation in Operation::ALL {
                if row_of(hook).is_some_and(|row| row.is_timed(hook, operation)) {
                    timed |= bit(hook, operation);
                }
            }
        }
        let rows = rows.map(|row| row.map_or(0, Row::index));
        Self { inner, rows, timed, measures: measures.clone() }
    }

    /// The meter of a hook, if it is measured.
    fn meter(&self, hook: Hook, operation: Operation) -> Option<Meter<'_>> {
        if self.timed & bit(hook, operation) == 0 {
            return None;
        }
        let phase = hook.phase();
        let durations = &self.measures.plugins[self.rows[phase as usize]];
        Some(Meter { durations, phase, operation, began: Instant::now() })
    }

    fn timed<T>(
        &self,
        hook: Hook,
        write: &Attributes<'_>,
        answer: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        let Some(meter) = self.meter(hook, write.operation) else { return answer() };
        let answer = answer();
        meter.answered(answer.is_err());
        answer
    }

    fn waited<'a, T: Send + 'a>(
        &'a self,
        hook: Hook,
        write: &Attributes<'_>,
        answer: impl FnOnce() -> Option<Waited<'a, T>>,
    ) -> Option<Waited<'a, T>> {
        let Some(meter) = self.meter(hook, write.operation) else { return answer() };
        match answer() {
            Some(answer) => Some(Box::pin(async move {
                let answer = answer.await;
                meter.answered(answer.is_err());
                answer
            })),
            None => {
                meter.answered(false);
                None
            }
        }
    }
}

/// Measures one call.
struct Meter<'a> {
    durations: &'a PhaseDurations,
    phase: Phase,
    operation: Operation,
    began: Instant,
}

impl Meter<'_> {
    fn answered(&self, rejected: bool) {
        self.durations.took(self.phase, self.operation, rejected, self.began.elapsed());
    }
}

impl Admission for Measured {
    fn before_mutation(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        self.timed(Hook::BeforeMutation, write, || self.inner.before_mutation(write, registry))
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        object: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        self.timed(Hook::Mutate, write, || self.inner.mutate(write, object, registry))
    }

    fn await_prerequisite<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        self.inner.await_prerequisite(write, registry)
    }

    fn mutate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
        memory: &'a mut Memory,
    ) -> Option<Waited<'a, Mutated>> {
        self.waited(Hook::MutateRegistered, write, || {
            self.inner.mutate_registered(write, registry, memory)
        })
    }

    fn after_mutation<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        self.inner.after_mutation(write, registry)
    }

    fn validate_fields(&self, write: &Attributes<'_>, errors: &mut Errors) {
        self.inner.validate_fields(write, errors);
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<Vec<String>, Status> {
        self.timed(Hook::Validate, write, || self.inner.validate(write, registry))
    }

    fn before_commit(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        self.timed(Hook::BeforeCommit, write, || self.inner.before_commit(write, registry))
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        self.waited(Hook::ValidateRegistered, write, || {
            self.inner.validate_registered(write, registry)
        })
    }
}
