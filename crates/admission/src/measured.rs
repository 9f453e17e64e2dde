//! Measures the duration of plugins as upstream does: once for each write whose operation the
//! plugin's handler accepts, in each phase of admission, whether or not the write concerns the
//! plugin.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_meta::{Status, field::Errors};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Memory, Operation, Waited};
use pintle_registry::allocation::Companion;
use pintle_registry::measures::{Phase, PhaseDurations};
use pintle_value::Value;

use crate::Measures;
use crate::rows::Row;

/// A plugin with measured hooks.
pub(crate) struct Measured {
    inner: Box<dyn Admission>,
    /// The hooks that are called: the plugin's, and those in which the plugin does nothing but
    /// whose calls count.
    hooks: Hooks,
    /// The plugin that is measured in each phase of admission: two of upstream's plugins may be one
    /// here.
    phases: [Option<Timed>; 2],
    measures: Arc<Measures>,
}

/// A plugin of upstream's in a phase of admission.
struct Timed {
    row: &'static Row,
    /// The row's index.
    index: usize,
    /// The hook that is measured, by operation.
    hooks: [Option<Hook>; Operation::ALL.len()],
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
        let mut hooks = inner.hooks();
        let phases = Phase::ALL.map(|phase| {
            let row = rows[phase as usize]?;
            let timed = Operation::ALL.map(|operation| row.timed(phase, operation, inner.hooks()));
            hooks = timed.iter().flatten().fold(hooks, |all, hook| all.with(*hook));
            Some(Timed { row, index: row.index(), hooks: timed })
        });
        Self { inner, hooks, phases, measures: measures.clone() }
    }

    /// Returns the meter of a hook's call. Returns `None` if calls of the hook are not measured, or
    /// if this one is already counted: a write that does not concern the plugin counts with a
    /// duration of zero, because reading the clock takes longer than the call.
    fn meter(&self, hook: Hook, write: &Attributes<'_>) -> Option<Meter<'_>> {
        let phase = match hook {
            Hook::BeforeMutation | Hook::Mutate | Hook::MutateRegistered => Phase::Admit,
            Hook::Validate | Hook::ValidateRegistered | Hook::BeforeCommit => Phase::Validate,
            Hook::AwaitPrerequisite | Hook::AfterMutation | Hook::ValidateFields => return None,
        };
        let operation = write.operation;
        let timed = self.phases[phase as usize].as_ref()?;
        if timed.hooks[operation as usize] != Some(hook) {
            return None;
        }
        let durations = &self.measures.plugins[timed.index];
        if !timed.row.concerns(&write.resource.resource) {
            durations.took(phase, operation, false, Duration::ZERO);
            return None;
        }
        Some(Meter { durations, phase, operation, began: Instant::now() })
    }

    fn timed<T>(
        &self,
        hook: Hook,
        write: &Attributes<'_>,
        answer: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        let Some(meter) = self.meter(hook, write) else { return answer() };
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
        let Some(meter) = self.meter(hook, write) else { return answer() };
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
    fn hooks(&self) -> Hooks {
        self.hooks
    }

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
    ) -> Option<Waited<'a, Option<Value>>> {
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

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
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
    ) -> Option<Waited<'a, ()>> {
        self.waited(Hook::ValidateRegistered, write, || {
            self.inner.validate_registered(write, registry)
        })
    }
}
