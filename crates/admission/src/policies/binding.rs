//! Policy bindings: where a policy applies, and with which parameters.

use pintle_meta::labels::Selector;
use pintle_registry::{Object, Unreadable};
use pintle_value::{Str, Value};

use super::head::{items, text};
use crate::matching::Matching;

/// A ValidatingAdmissionPolicyBinding or a MutatingAdmissionPolicyBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: Str,
    pub(super) policy: Str,
    /// `None` matches everything that the policy matches.
    pub(super) matching: Option<Matching>,
    pub(super) params: Option<ParamRef>,
    /// The validation actions, as the binding lists them.
    pub(super) actions: Value,
    pub(super) denies: bool,
    pub(super) warns: bool,
    /// Whether failures are recorded in the audit log.
    pub(super) audits: bool,
}

/// The parameters of a binding.
#[derive(Debug)]
pub(super) struct ParamRef {
    /// `""` if a selector chooses the parameters.
    pub(super) name: Str,
    /// `""` for the namespace of the request.
    pub(super) namespace: Str,
    /// The selector, or why it is invalid.
    pub(super) selector: Result<Selector, String>,
    /// Whether a write is refused without parameters.
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
            params: spec.get("paramRef").map(|param_ref| ParamRef {
                name: text(param_ref, "name").into(),
                namespace: text(param_ref, "namespace").into(),
                selector: Selector::from_label_selector(param_ref.get("selector"))
                    .map_err(|why| why.to_string()),
                required: text(param_ref, "parameterNotFoundAction") == "Deny",
            }),
            actions: actions.to_vec().into(),
            denies: acts("Deny"),
            warns: acts("Warn"),
            audits: acts("Audit"),
        })
    }
}
