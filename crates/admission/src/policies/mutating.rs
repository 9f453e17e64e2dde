//! MutatingAdmissionPolicy: expressions of users change objects before validation (MAP-01).
//!
//! Purpose: evaluates each policy, for each of its bindings and parameters, on the object as the one before it
//! left it. A failure refuses the write, unless the policy ignores failures; the other policies are evaluated
//! nevertheless, so that the answer names all failures.

mod patch;
mod policy;
#[cfg(test)]
mod tests;

use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use pintle_meta::{Reason, Status, object};
use pintle_registry::admission::{Admission, Attributes, Memory, Mutated, Operation, Waited};
use pintle_registry::{Registry, Resource, work};
use pintle_value::{Str, Value};

use super::binding::Binding;
use super::head::Head;
use super::seen::{Seen, is_wanted};
use super::{Concerned, Policies, params};
use crate::measures::Measures;
use crate::permissions::{Permissions, settled};
use crate::request::{returned, taken};
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
    params: Value,
}

/// The result of a policy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    /// No mutation was made.
    Nothing,
    /// The object is unchanged.
    Same,
    Changed,
}

/// The failures of policies.
#[derive(Default)]
struct Failures {
    messages: Vec<String>,
    /// The reason of the first failure, if its policy sets one.
    reason: Option<Reason>,
}

impl Mutating {
    /// The plugin, whose policies ask `permissions` what users may do.
    pub fn new(permissions: Arc<dyn Permissions>, measures: Arc<Measures>) -> Self {
        let bindings = "mutatingadmissionpolicybindings";
        let policies = Policies::new("mutatingadmissionpolicies", bindings, Policy::of, measures);
        Self { policies, permissions }
    }
}

impl Admission for Mutating {
    fn mutate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
        memory: &'a mut Memory,
    ) -> Option<Waited<'a, Mutated>> {
        // A deletion has no new object.
        if write.operation == Operation::Delete {
            return None;
        }
        let concerned = match self.policies.concerned(write, registry) {
            Ok(concerned) => concerned,
            Err(status) => return Some(Box::pin(ready(Err(status)))),
        };
        (!concerned.is_empty()).then(|| -> Waited<'a, Mutated> {
            Box::pin(async move { self.change(write, registry, &concerned, memory).await })
        })
    }
}

impl Mutating {
    /// Evaluates the policies one after the other.
    async fn change(
        &self,
        write: &Attributes<'_>,
        registry: &Registry,
        concerned: &[Concerned<Policy>],
        memory: &mut Memory,
    ) -> Result<Mutated, Status> {
        let (permissions, measures) = (&*self.permissions, &*self.policies.measures);
        let mut failures = Failures::default();
        work::ahead_of_expressions().await;
        let invocations = invocations(write, registry, concerned, &mut failures);
        // The object in the stored form, without the changes of the last policy.
        let mut object: Option<Value> = None;
        let mut is_touched = false;
        let mut last: Option<(Seen, bool)> = None;
        for invocation in &invocations {
            let version = invocation.version;
            let (mut seen, mut changed) = match last.take() {
                Some((seen, changed)) if seen.version.resource == version.resource => {
                    (seen, changed)
                }
                before => {
                    if let Some((seen, true)) = before {
                        object = Some(taken(seen.object, write, &seen.version).await?);
                    }
                    let object = object.as_ref().or(write.object);
                    (Seen::of(write, object, registry, version, permissions).await?, false)
                }
            };
            let done = invocation.run(&mut seen, write, memory, &mut failures, measures).await?;
            changed |= done == Done::Changed;
            is_touched |= done != Done::Nothing;
            last = Some((seen, changed));
        }
        // As upstream: a policy that asks for reinvocation gets it after any change, also its own.
        if is_touched {
            memory.wake();
        }
        if let Some((seen, true)) = last {
            object = Some(taken(seen.object, write, &seen.version).await?);
        }
        failures.result(write)?;
        Ok(Mutated { object: object.map(|object| returned(object, write)), warnings: Vec::new() })
    }
}

/// All that policies are to do, with the parameters that they are to do it with.
fn invocations<'c>(
    write: &Attributes<'_>,
    registry: &Registry,
    concerned: &'c [Concerned<Policy>],
    failures: &mut Failures,
) -> Vec<Invocation<'c>> {
    let mut invocations = Vec::new();
    for Concerned { policy, bindings, version } in concerned {
        let kind = match params::resource(&policy.head, registry) {
            Ok(kind) => kind,
            Err(why) => {
                let why = format!("failed to configure policy: {why}");
                failures.add(&policy.head, None, &why, None);
                continue;
            }
        };
        for binding in bindings {
            match params::collect(kind.as_deref(), binding, write, registry) {
                Ok(all) => invocations.extend(all.into_iter().map(|params| Invocation {
                    policy,
                    binding,
                    version,
                    params,
                })),
                Err(why) => {
                    let why = format!("failed to configure binding: {why}");
                    failures.add(&policy.head, Some(&binding.name), &why, None);
                }
            }
        }
    }
    invocations
}

impl Invocation<'_> {
    /// Changes an object as the policy's version shows it.
    async fn run(
        &self,
        seen: &mut Seen,
        write: &Attributes<'_>,
        memory: &mut Memory,
        failures: &mut Failures,
        measures: &Measures,
    ) -> Result<Done, Status> {
        let head = &self.policy.head;
        let mut fail = |why: &str| {
            failures.add(head, Some(&self.binding.name), why, Some(Reason::Invalid));
        };
        let facts = seen.facts(head, &self.params);
        let wanted = || is_wanted(head, facts, (measures, write.operation));
        match settled(&*seen.asked, wanted).await {
            Ok(true) => {}
            Ok(false) => return Ok(Done::Nothing),
            Err(why) => {
                fail(&why);
                return Ok(Done::Nothing);
            }
        }
        let key = self.key();
        if !memory.is_due(&key) {
            return Ok(Done::Nothing);
        }
        let mut done = Done::Nothing;
        for mutation in &self.policy.mutations {
            if seen.object.is_null() {
                break;
            }
            let began = Instant::now();
            let patch = || patch::patched(head, mutation, seen, &self.params, write.kind);
            let patched = settled(&*seen.asked, patch).await;
            let failure = match &patched {
                Ok(_) => None,
                Err(Problem::Policy(why)) => Some(why.as_str()),
                Err(Problem::Request(status)) => Some(status.message.as_str()),
            };
            measures.mutated((&head.name, &self.binding.name), failure, began.elapsed());
            match patched {
                Ok(object) => {
                    let step = if object == seen.object { Done::Same } else { Done::Changed };
                    done = done.max(step);
                    seen.object = object;
                }
                Err(Problem::Policy(why)) => fail(&why),
                Err(Problem::Request(status)) => return Err(status),
            }
        }
        if done == Done::Changed {
            memory.wake();
        }
        if self.policy.again {
            memory.note(key);
        }
        Ok(done)
    }

    /// Tells this one from others.
    fn key(&self) -> String {
        let (namespace, name) = (object::namespace(&self.params), object::name(&self.params));
        format!("{}/{}/{namespace}/{name}", self.policy.head.name, self.binding.name)
    }
}

impl Failures {
    fn add(&mut self, policy: &Head, binding: Option<&Str>, why: &str, reason: Option<Reason>) {
        if policy.lenient {
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
        self.messages.push(message);
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
