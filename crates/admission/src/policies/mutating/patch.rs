//! Applies a mutation to an object (upstream: `plugin/policy/mutating/patch`).

use pintle_apply::PatchType;
use pintle_apply::server_side::merge_unowned;
use pintle_cel::Budget;
use pintle_meta::{GroupVersionKind, Status};
use pintle_schema::{Problem as Unfit, Schema, TypeId, conform};
use pintle_value::{Value, json};

use super::policy::Mutation;
use crate::expressions::Evaluation;
use crate::policies::head::Head;
use crate::policies::input::PolicyInput;
use crate::request::check_kind;

/// The cost limit of one mutation (upstream: `RuntimeCELCostBudget`).
const COST_MAX: u64 = 10_000_000;

/// Why an object was not mutated.
#[derive(Debug, PartialEq)]
pub(super) enum Problem {
    /// The policy is wrong.
    Policy(String),
    /// The write is refused even if the policy ignores failures.
    Request(Status),
}

/// Returns the mutated object. `kind` is the object's kind if it is not the resource's; only an
/// object of the resource's kind gets defaults.
pub(super) fn patched(
    policy: &Head,
    mutation: &Mutation,
    input: &PolicyInput,
    params: &Value,
    kind: Option<&GroupVersionKind>,
) -> Result<Value, Problem> {
    let expression = match mutation {
        Mutation::Apply(expression) | Mutation::Patch(expression) => expression,
    };
    if let Some(why) = expression.problem() {
        return Err(Problem::Policy(why.to_owned()));
    }
    let typed = schema_of(input, kind)?;
    let evaluation = Evaluation::new(input.inputs(policy, params), &policy.variables);
    let output = evaluation.of(expression, &mut Budget::new(COST_MAX));
    let output = output.map_err(|why| Problem::Policy(why.into_text()))?;
    let mut object = match mutation {
        Mutation::Apply(_) => apply(typed, &input.object, output)?,
        Mutation::Patch(_) => patch(typed, &input.object, &output)?,
    };
    if kind.is_none() {
        input.version.set_defaults(&mut object);
    }
    Ok(object)
}

/// The type of the object.
fn schema_of<'s>(
    input: &'s PolicyInput,
    kind: Option<&GroupVersionKind>,
) -> Result<(&'s Schema, TypeId), Problem> {
    let Some(kind) = kind else { return Ok((&input.version.schema, input.version.ty)) };
    let ty = pintle_schema::builtin_kind(&kind.group_version().to_string(), &kind.kind);
    ty.map(|ty| (pintle_schema::builtin(), ty)).ok_or_else(|| {
        let version = kind.group_version();
        Problem::Request(Status::service_unavailable(format!(
            "Resource kind {version}, Kind={} not found. There can be a delay between when \
             CustomResourceDefinitions are created and when they are available.",
            kind.kind
        )))
    })
}

/// Applies a configuration to an object. The configuration gets the object's `apiVersion` and
/// `kind`.
pub(super) fn apply(
    (schema, ty): (&Schema, TypeId),
    object: &Value,
    mut configuration: Value,
) -> Result<Value, Problem> {
    for member in ["apiVersion", "kind"] {
        if let Some(value) = object.get(member) {
            configuration.make_object().insert(member, value.clone());
        }
    }
    merge_unowned(schema, ty, object, &configuration)
        .map_err(|why| Problem::Policy(format!("error applying patch: {why}")))
}

/// Applies a JSON patch to an object; if a `test` operation fails, the object is unchanged.
pub(super) fn patch(
    (schema, ty): (&Schema, TypeId),
    object: &Value,
    operations: &Value,
) -> Result<Value, Problem> {
    let text = json::to_string(operations);
    let mut patched =
        match pintle_apply::apply(PatchType::Json, schema, ty, object, text.as_bytes()) {
            Ok(patched) => patched.value,
            Err(why) if why.to_string().ends_with("test failed") => return Ok(object.clone()),
            Err(why) => return Err(Problem::Policy(format!("JSON Patch: {why}"))),
        };
    // The policy made the unknown fields, not the client, so they are an internal error. Unknown
    // fields of custom resources are pruned later.
    if !schema.is_structural(ty) {
        check_kind(&patched, object).map_err(Problem::Request)?;
        let unfit = conform(schema, ty, &mut patched)
            .map_err(|why| Problem::Request(Status::internal(why)))?;
        if !unfit.is_empty() {
            return Err(Problem::Request(Status::internal(Unfit::strict(&unfit))));
        }
    }
    Ok(patched)
}
