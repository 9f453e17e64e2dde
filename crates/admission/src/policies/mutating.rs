//! MutatingAdmissionPolicy: users' expressions change objects before validation (MAP-01).
//!
//! Evaluates each policy, once per binding and parameter, on the object as the policies before it
//! changed it. A failure refuses the write, unless the policy ignores failures. The remaining
//! policies are evaluated nevertheless, so that the response names all failures.

mod patch;
mod policy;
#[cfg(test)]
mod tests;

use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use pintle_meta::{Reason, Status, object};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Memory, Operation, Waited};
use pintle_registry::{Registry, Resource, work};
use pintle_value::{Str, Value};

use super::binding::Binding;
use super::head::Head;
use super::input::{PolicyInput, is_matched, namespace_of};
use super::params::Parameter;
use super::{MatchedPolicy, Policies, params};
use crate::measures::Measures;
use crate::pace::Pace;
use crate::permissions::{Permissions, evaluate_with_rulings};
use crate::request::{to_stored_form, to_written_version};
use patch::Problem;
pub(crate) use policy::Policy;

/// The plugin.
pub struct Mutating {
    policies: Policies<Policy>,
    permissions: Arc<dyn Permissions>,
}

/// A policy that matches a write, with its binding and parameters.
struct Invocation<'c> {
    policy: &'c Policy,
    binding: &'c Binding,
    version: &'c Arc<Resource>,
    params: Parameter,
}

/// The outcome of one invocation of a policy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// No mutation was applied: the policy does not match the write, is not due in this round, or
    /// all of its mutations failed.
    NotApplied,
    /// The mutations left the object as it was.
    Unchanged,
    Changed,
}

/// The size of the messages of failures after which no more are added. Each has the text of an
/// expression, and a policy fails once for each parameter.
const MESSAGES_BYTES_MAX: usize = 256 * 1024;

/// The message in place of those that are not added.
const MORE: &str = "and more errors";

/// The failures of policies.
#[derive(Default)]
struct Failures {
    messages: Vec<String>,
    /// The size of the messages.
    bytes: usize,
    /// The reason of the first failure; `None` if this failure is a policy or binding that could
    /// not be configured.
    reason: Option<Reason>,
}

impl Mutating {
    /// The plugin; `permissions` authorizes users for the `authorizer` of expressions.
    pub fn new(permissions: Arc<dyn Permissions>, measures: Arc<Measures>) -> Self {
        let bindings = "mutatingadmissionpolicybindings";
        let policies = Policies::new("mutatingadmissionpolicies", bindings, measures);
        Self { policies, permissions }
    }
}

impl Admission for Mutating {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::MutateRegistered])
    }

    fn mutate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
        memory: &'a mut Memory,
    ) -> Option<Waited<'a, Option<Value>>> {
        // A deletion has no new object.
        if write.operation == Operation::Delete {
            return None;
        }
        let matched = match self.policies.matched(write, registry) {
            Ok(matched) => matched,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!matched.is_empty()).then(|| -> Waited<'a, Option<Value>> {
            Box::pin(async move { self.evaluate_all(write, registry, &matched, memory).await })
        })
    }
}

impl Mutating {
    /// Evaluates the policies one after the other.
    async fn evaluate_all(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
        matched: &[MatchedPolicy<Policy>],
        memory: &mut Memory,
    ) -> Result<Option<Value>, Status> {
        let (permissions, measures) = (&*self.permissions, &*self.policies.measures);
        let mut failures = Failures::default();
        work::ahead_of_expressions().await;
        let namespace = namespace_of(write, registry)?;
        let invocations = invocations(write, registry, matched, &mut failures).await;
        let mut pace = Pace::begin();
        // The object in the form that the write path works on, without the changes of the last
        // policies that have the same version.
        let mut object: Option<Value> = None;
        let mut is_applied = false;
        let mut last: Option<(PolicyInput, bool)> = None;
        for invocation in &invocations {
            let version = invocation.version;
            let (mut input, mut changed) = match last.take() {
                Some((input, changed)) if input.version.resource == version.resource => {
                    (input, changed)
                }
                before => {
                    if let Some((input, true)) = before {
                        object = Some(to_stored_form(input.object, write, &input.version).await?);
                    }
                    let object = object.as_ref().or(write.object);
                    let input = PolicyInput::of(write, object, &namespace, version, permissions);
                    (input.await?, false)
                }
            };
            let outcome =
                invocation.run(&mut input, write, memory, &mut failures, measures).await?;
            changed |= outcome == Outcome::Changed;
            is_applied |= outcome != Outcome::NotApplied;
            last = Some((input, changed));
            pace.step().await;
        }
        // As in upstream, an applied mutation causes the reinvocation of all policies that ask for
        // it, also of its own policy, and even if the mutation changed nothing.
        if is_applied {
            memory.wake();
        }
        if let Some((input, true)) = last {
            object = Some(to_stored_form(input.object, write, &input.version).await?);
        }
        failures.result(write)?;
        Ok(object.map(|object| to_written_version(object, write)))
    }
}

/// Returns an invocation for each matching policy, binding and parameter.
async fn invocations<'c>(
    write: &Attributes<'_>,
    registry: &Registry,
    matched: &'c [MatchedPolicy<Policy>],
    failures: &mut Failures,
) -> Vec<Invocation<'c>> {
    let mut invocations = Vec::new();
    for MatchedPolicy { policy, bindings, version } in matched {
        let policy = &*policy.compiled;
        let kind = match params::resource(&policy.head, registry) {
            Ok(kind) => kind,
            Err(why) => {
                let why = format!("failed to configure policy: {why}");
                failures.add(&policy.head, None, &why, None);
                continue;
            }
        };
        for binding in bindings {
            match params::collect(kind.as_ref(), binding, write, registry).await {
                Ok(all) => invocations.extend(all.into_iter().map(|params| Invocation {
                    policy,
                    binding,
                    version,
                    params,
                })),
                Err(why) => failures.add_unconfigured(&policy.head, binding, &why),
            }
        }
    }
    invocations
}

impl Invocation<'_> {
    /// Evaluates the policy and applies its mutations to `input.object`.
    async fn run(
        &self,
        input: &mut PolicyInput,
        write: &Attributes<'_>,
        memory: &mut Memory,
        failures: &mut Failures,
        measures: &Measures,
    ) -> Result<Outcome, Status> {
        let head = &self.policy.head;
        let params = match self.params.value() {
            Ok(params) => params,
            Err(why) => {
                failures.add_unconfigured(head, self.binding, &why);
                return Ok(Outcome::NotApplied);
            }
        };
        let mut fail = |why: &str| {
            failures.add(head, Some(&self.binding.name), why, Some(Reason::Invalid));
        };
        let inputs = input.inputs(head, &params);
        let matches = || is_matched(head, inputs, (measures, write.operation));
        match evaluate_with_rulings(&*input.rulings, matches).await {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::NotApplied),
            Err(why) => {
                fail(&why);
                return Ok(Outcome::NotApplied);
            }
        }
        let key = self.key();
        if !memory.is_due(&key) {
            return Ok(Outcome::NotApplied);
        }
        let (mut outcome, mut pace) = (Outcome::NotApplied, Pace::begin());
        for mutation in &self.policy.mutations {
            if input.object.is_null() {
                break;
            }
            let began = Instant::now();
            let patch = || patch::patched(head, mutation, input, &params, write.kind);
            let patched = evaluate_with_rulings(&*input.rulings, patch).await;
            let failure = match &patched {
                Ok(_) => None,
                Err(Problem::Policy(why)) => Some(why.as_str()),
                Err(Problem::Request(status)) => Some(status.message.as_str()),
            };
            measures.mutated((&head.name, &self.binding.name), failure, began.elapsed());
            match patched {
                Ok(object) => {
                    let step =
                        if object == input.object { Outcome::Unchanged } else { Outcome::Changed };
                    outcome = outcome.max(step);
                    input.object = object;
                }
                Err(Problem::Policy(why)) => fail(&why),
                Err(Problem::Request(status)) => return Err(status),
            }
            pace.step().await;
        }
        if outcome == Outcome::Changed {
            memory.wake();
        }
        if self.policy.wants_reinvocation {
            memory.note(key);
        }
        Ok(outcome)
    }

    /// Identifies the invocation among those of one write.
    fn key(&self) -> String {
        let [namespace, name] = self.params.identity();
        format!("{}/{}/{namespace}/{name}", self.policy.head.name, self.binding.name)
    }
}

impl Failures {
    /// Adds the failure of a binding whose parameters cannot be read.
    fn add_unconfigured(&mut self, policy: &Head, binding: &Binding, why: &str) {
        let why = format!("failed to configure binding: {why}");
        self.add(policy, Some(&binding.name), &why, None);
    }

    /// Adds a failure, unless the policy ignores failures or the messages are too long already.
    fn add(&mut self, policy: &Head, binding: Option<&Str>, why: &str, reason: Option<Reason>) {
        if policy.ignores_failures || self.bytes > MESSAGES_BYTES_MAX {
            return;
        }
        let policy = &*policy.name;
        let message = match binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{binding}' denied request: {why}")
            }
            None => format!("policy {policy:?} denied request: {why}"),
        };
        if self.messages.is_empty() {
            self.reason = reason;
        }
        self.bytes += message.len();
        self.messages.push(message);
        if self.bytes > MESSAGES_BYTES_MAX {
            self.messages.push(MORE.to_owned());
        }
    }

    fn result(self, write: &Attributes<'_>) -> Result<(), Status> {
        if self.messages.is_empty() {
            return Ok(());
        }
        let resource = write.resource.group_resource();
        let named = write.object.map(object::name).unwrap_or_default();
        let name = [write.name, named, "Unknown"].into_iter().find(|name| !name.is_empty());
        let name = name.unwrap_or_default();
        Err(Status::failed_by_policies(&resource, name, &self.messages, self.reason))
    }
}
