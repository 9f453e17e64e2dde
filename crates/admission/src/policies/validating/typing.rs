//! Checks a policy's expressions against the types of the resources that it matches (VAP-02,
//! upstream: `TypeChecker`). Errors are warnings in the policy's status and change nothing else,
//! because the types may differ when the policy is evaluated.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_meta::{GroupVersion, GroupVersionResource};
use pintle_registry::{Registry, Resource};
use pintle_value::{Str, Value};

use crate::expressions::typed::declaration;
use crate::expressions::{ANYTHING, Compiler, Expected};
use crate::matching::texts;
use crate::policies::head::{at, items, text};

/// The largest number of types that are checked, as in upstream.
const TYPES_MAX: usize = 10;

/// The largest number of names of resources that are looked up. A rule names the product of its
/// groups, versions and resources.
const NAMES_MAX: usize = 10_000;

/// A warning in the policy's status.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// The path to the expression.
    pub field: String,
    /// The errors, one paragraph per type.
    pub warning: String,
}

/// Checks the expressions of a policy's validations against each type.
pub fn type_warnings(policy: &Value, registry: &Registry) -> Vec<ExpressionWarning> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let params = params(spec, registry);
    let compilers = types(spec, registry).into_iter().map(|(name, resource)| {
        let object = declaration(&resource.schema, resource.ty, &resource.kind);
        let mut compiler = Compiler::of_policy(object, params.clone());
        compiler.declare_variables();
        for variable in items(spec, "variables") {
            compiler.add_variable(text(variable, "name"), text(variable, "expression"));
        }
        (name, compiler)
    });
    let compilers: Vec<_> = compilers.collect();
    let mut warnings = Vec::new();
    for (index, validation) in items(spec, "validations").iter().enumerate() {
        for member in ["expression", "messageExpression"] {
            let expression = text(validation, member);
            if expression.is_empty() {
                continue;
            }
            let wrong: Vec<String> = compilers
                .iter()
                .filter_map(|(name, compiler)| wrong(name, compiler, expression))
                .collect();
            if !wrong.is_empty() {
                let field = at("validations", index, member).to_string();
                warnings.push(ExpressionWarning { field, warning: wrong.join("\n") });
            }
        }
    }
    warnings
}

/// Returns the compilation error of an expression with the declarations of one type.
fn wrong(name: &str, compiler: &Compiler, expression: &str) -> Option<String> {
    let expression = compiler.compile(expression, Expected::Anything);
    let why = expression.problem()?;
    let why = why.strip_prefix("compilation failed: ").unwrap_or(why);
    Some(format!("{name}: {why}\n"))
}

/// Returns the declaration of a policy's parameters; `None` without a parameter kind.
fn params(spec: &Value, registry: &Registry) -> Option<pintle_cel::Declaration> {
    let kind = spec.get("paramKind")?;
    let version = GroupVersion::parse(text(kind, "apiVersion"));
    let (_, resources) = registry.resources();
    let resource = resources.iter().find(|resource| {
        let of = resource.gvk();
        Some(of.group_version()) == version && of.kind == text(kind, "kind")
    });
    let known = resource.map(|found| declaration(&found.schema, found.ty, &found.kind));
    Some(known.unwrap_or(ANYTHING))
}

/// Returns at most [`TYPES_MAX`] of the resources that a policy names without wildcards, by the
/// text that warnings use for them.
fn types(spec: &Value, registry: &Registry) -> BTreeMap<String, Arc<Resource>> {
    let mut found = BTreeMap::new();
    let rules = spec.at(&["matchConstraints", "resourceRules"]);
    let rules = rules.and_then(Value::as_array).unwrap_or_default();
    for name in rules.iter().flat_map(names).take(NAMES_MAX) {
        let Some(resource) = registry.resource(&name) else { continue };
        let kind = format!("{}/{}, Kind={}", name.group, name.version, resource.kind);
        found.insert(kind, resource);
        if found.len() == TYPES_MAX {
            break;
        }
    }
    found
}

/// The resources that a rule names without wildcards, each group with each version and each
/// resource.
fn names(rule: &Value) -> impl Iterator<Item = GroupVersionResource> + use<> {
    let sorted = |member| {
        let mut all = texts(rule, member);
        all.sort();
        all
    };
    let (mut groups, versions) = (sorted("apiGroups"), sorted("apiVersions"));
    if groups.iter().chain(&versions).any(|name| name.contains('*')) {
        groups.clear();
    }
    let mut resources = sorted("resources");
    resources.retain(|name| !name.contains(['*', '/']));
    let (versions, resources) = (Arc::new(versions), Arc::new(resources));
    groups.into_iter().flat_map(move |group| {
        let resources = resources.clone();
        all(&versions).flat_map(move |version| {
            let group = group.clone();
            all(&resources).map(move |resource| {
                GroupVersionResource::new(group.clone(), version.clone(), resource)
            })
        })
    })
}

fn all(texts: &Arc<Vec<Str>>) -> impl Iterator<Item = Str> + use<> {
    let texts = texts.clone();
    (0..texts.len()).filter_map(move |at| texts.get(at).cloned())
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn rules_name_resources() {
        for (rule, expected) in [
            (
                r#"{"apiGroups":["b","a"],"apiVersions":["v1"],"resources":["x","y/z","*"]}"#,
                "a/v1/x b/v1/x",
            ),
            (
                r#"{"apiGroups":["a"],"apiVersions":["v2","v1"],"resources":["y","x"]}"#,
                "a/v1/x a/v1/y a/v2/x a/v2/y",
            ),
            (r#"{"apiGroups":["*"],"apiVersions":["v1"],"resources":["x"]}"#, ""),
            (r#"{"apiGroups":["a"],"apiVersions":["*"],"resources":["x"]}"#, ""),
            ("{}", ""),
        ] {
            let rule = json::parse(rule.as_bytes()).expect(rule);
            let found = names(&rule).map(|n| format!("{}/{}/{}", n.group, n.version, n.resource));
            assert_eq!(found.collect::<Vec<_>>().join(" "), expected);
        }
    }

    /// 100,000 groups, versions and resources are 10^15 names.
    #[test]
    fn names_are_not_made_before_they_are_looked_up() {
        let list = format!("[{}\"a\"]", "\"a\",".repeat(100_000));
        let rule = format!(r#"{{"apiGroups":{list},"apiVersions":{list},"resources":{list}}}"#);
        let rule = json::parse(rule.as_bytes()).expect("a rule");
        assert_eq!(names(&rule).take(NAMES_MAX).count(), NAMES_MAX);
    }
}
