//! Authorization checks. Only expressions of admission have an authorizer; elsewhere these names
//! are merely reserved.

use std::sync::Arc;

use pintle_meta::names;

use super::no_overload;
use crate::authorizer::{Decision, ResourceCheck, Subject, UserAuthorizer};
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Opaque, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    (
        "path",
        Typed,
        path,
        &[(
            "authorizer_path",
            ".kubernetes.authorization.Authorizer, string -> kubernetes.authorization.PathCheck",
        )],
    ),
    (
        "group",
        Typed,
        group,
        &[(
            "authorizer_group",
            ".kubernetes.authorization.Authorizer, string -> kubernetes.authorization.GroupCheck",
        )],
    ),
    (
        "serviceAccount",
        Typed,
        service_account,
        &[(
            "authorizer_serviceaccount",
            ".kubernetes.authorization.Authorizer, string, string -> kubernetes.authorization.Authorizer",
        )],
    ),
    (
        "resource",
        Typed,
        resource,
        &[(
            "groupcheck_resource",
            ".kubernetes.authorization.GroupCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "subresource",
        Typed,
        |_, args| with(args, |check, text| check.subresource = text),
        &[(
            "resourcecheck_subresource",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "namespace",
        Typed,
        |_, args| with(args, |check, text| check.namespace = text),
        &[(
            "resourcecheck_namespace",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "name",
        Typed,
        |_, args| with(args, |check, text| check.name = text),
        &[(
            "resourcecheck_name",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "fieldSelector",
        Typed,
        |_, args| with(args, |check, text| check.field_selector = text),
        &[(
            "authorizer_fieldselector",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "labelSelector",
        Typed,
        |_, args| with(args, |check, text| check.label_selector = text),
        &[(
            "authorizer_labelselector",
            ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.ResourceCheck",
        )],
    ),
    (
        "check",
        Typed,
        check,
        &[
            (
                "pathcheck_check",
                ".kubernetes.authorization.PathCheck, string -> kubernetes.authorization.Decision",
            ),
            (
                "resourcecheck_check",
                ".kubernetes.authorization.ResourceCheck, string -> kubernetes.authorization.Decision",
            ),
        ],
    ),
    (
        "allowed",
        Typed,
        |_, args| of(args, |decision| Val::Bool(decision.allowed)),
        &[("decision_allowed", ".kubernetes.authorization.Decision -> bool")],
    ),
    (
        "reason",
        Typed,
        |_, args| of(args, |decision| Val::string(decision.reason.as_str())),
        &[("decision_reason", ".kubernetes.authorization.Decision -> string")],
    ),
    (
        "error",
        Typed,
        |_, args| of(args, |decision| Val::string(decision.error.as_deref().unwrap_or_default())),
        &[("decision_error", ".kubernetes.authorization.Decision -> string")],
    ),
    (
        "errored",
        Typed,
        |_, args| of(args, |decision| Val::Bool(decision.error.is_some())),
        &[("decision_errored", ".kubernetes.authorization.Decision -> bool")],
    ),
];

fn opaque<'a>(opaque: Opaque) -> Eval<'a> {
    Ok(Val::Opaque(Arc::new(opaque)))
}

/// The authorizer of a check, and the text argument.
fn asker<'v>(args: &'v [Val<'_>]) -> Result<(&'v UserAuthorizer, &'v str), EvalError> {
    if let [Val::Opaque(opaque), Val::String(text)] = args
        && let Opaque::Authorizer(asker) = &**opaque
    {
        return Ok((asker, text));
    }
    no_overload()
}

fn path<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (asker, path) = asker(args)?;
    match path.trim() {
        "" => Err(EvalError::new("path must not be empty")),
        _ => opaque(Opaque::PathCheck(asker.clone(), path.to_owned())),
    }
}

fn group<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (asker, group) = asker(args)?;
    opaque(Opaque::GroupCheck(asker.clone(), group.to_owned()))
}

fn service_account<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::Opaque(of), Val::String(namespace), Val::String(name)] = args else {
        return no_overload();
    };
    let Opaque::Authorizer(asker) = &**of else { return no_overload() };
    if !names::subdomain_rule(name, false).is_empty() {
        return Err(EvalError::new("Invalid service account name"));
    }
    if !names::label_rule(namespace, false).is_empty() {
        return Err(EvalError::new("Invalid service account namespace"));
    }
    let account = Some((Arc::from(&**namespace), Arc::from(&**name)));
    opaque(Opaque::Authorizer(UserAuthorizer { account, ..asker.clone() }))
}

fn resource<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::Opaque(of), Val::String(resource)] = args else { return no_overload() };
    let Opaque::GroupCheck(asker, group) = &**of else { return no_overload() };
    if resource.trim().is_empty() {
        return Err(EvalError::new("resource must not be empty"));
    }
    let (group, resource) = (group.clone(), resource.to_string());
    let check = ResourceCheck { group, resource, ..ResourceCheck::default() };
    opaque(Opaque::ResourceCheck(asker.clone(), check))
}

/// Extends a check by an attribute.
fn with<'a>(args: &[Val<'a>], set: impl FnOnce(&mut ResourceCheck, String)) -> Eval<'a> {
    let [Val::Opaque(of), Val::String(text)] = args else { return no_overload() };
    let Opaque::ResourceCheck(asker, check) = &**of else { return no_overload() };
    let mut check = check.clone();
    set(&mut check, text.to_string());
    opaque(Opaque::ResourceCheck(asker.clone(), check))
}

fn check<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::Opaque(of), Val::String(verb)] = args else { return no_overload() };
    opaque(Opaque::Decision(match &**of {
        Opaque::PathCheck(asker, path) => asker.ask(verb, Subject::Path(path)),
        Opaque::ResourceCheck(asker, check) => asker.ask(verb, Subject::Resource(check)),
        _ => return no_overload(),
    }))
}

fn of<'a>(args: &[Val<'a>], read: impl FnOnce(&Decision) -> Val<'a>) -> Eval<'a> {
    match args {
        [Val::Opaque(of)] => match &**of {
            Opaque::Decision(decision) => Ok(read(decision)),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}
