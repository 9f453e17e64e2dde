//! A binding as it is kept: what makes a policy count, where, and with which parameters.

use pintle_registry::{Object, Unreadable};
use pintle_value::{Str, Value};

use super::head::{items, text};
use crate::matching::Matching;

/// A ValidatingAdmissionPolicyBinding or a MutatingAdmissionPolicyBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: Str,
    pub(super) policy: Str,
    /// `None` for everything that the policy is about.
    pub(super) matching: Option<Matching>,
    pub(super) params: Option<ParamRef>,
    /// What becomes of what a validating policy objects to, as it is said.
    pub(super) actions: Value,
    pub(super) denies: bool,
    pub(super) warns: bool,
    /// It is told in the audit log.
    pub(super) audits: bool,
}

/// Which objects are parameters.
#[derive(Debug)]
pub(super) struct ParamRef {
    /// `""` where they are selected.
    pub(super) name: Str,
    /// `""` for the namespace of the request.
    pub(super) namespace: Str,
    pub(super) selector: Value,
    /// Where there are none, the write is refused.
    pub(super) required: bool,
}

impl Binding {
    pub(super) fn of(binding: &Object) -> Result<Self, Unreadable> {
        let tree = binding.tree()?;
        let spec = tree.get("spec").unwrap_or(&Value::Null);
        let actions = items(spec, "validationActions");
        let acts = |action: &str| actions.iter().any(|one| one.as_str() == Some(action));
        Ok(Self {
            name: binding.name().into(),
            policy: text(spec, "policyName").into(),
            matching: spec.get("matchResources").map(Matching::of_policy),
            params: spec.get("paramRef").map(|said| ParamRef {
                name: text(said, "name").into(),
                namespace: text(said, "namespace").into(),
                selector: said.get("selector").cloned().unwrap_or_default(),
                required: text(said, "parameterNotFoundAction") == "Deny",
            }),
            actions: actions.to_vec().into(),
            denies: acts("Deny"),
            warns: acts("Warn"),
            audits: acts("Audit"),
        })
    }
}
