//! The type checker: finds the types of all nodes, and resolves names and calls.
//!
//! Invariants: in an expression without issues every node has a type, and every name and call has a
//! reference; types that cannot be inferred are `dyn`.

mod fold;
mod format_strings;
mod literals;
mod unify;

use std::sync::Arc;

use crate::allowance::Allowance;
use crate::ast::{Call, Entry, Expr, Field, Item, Kind, Literal, Select, Struct};
use crate::functions::{self, Function, Overload};
use crate::library;
use crate::scope::Scope;
use crate::source::Issues;
use crate::types::{NODES_MAX, Type};
use crate::value::made;
use unify::Unifier;

/// The resolution of a name or call.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable of the scope, by its index.
    Variable(usize),
    /// A variable of a macro.
    Local,
    /// The name of a type.
    Type(Type),
    /// A function call with the candidate overloads that match.
    Call {
        function: &'static Function,
        overloads: Box<[&'static Overload]>,
        /// Whether the text before the last dot is part of the function's name.
        qualified: bool,
    },
}

/// The results for a checked expression, indexed by node id.
pub(crate) struct Checked {
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
}

impl Checked {
    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    pub(crate) fn reference(&self, expr: &Expr) -> Option<&Reference> {
        self.references[expr.id as usize].as_ref()
    }

    /// All names and calls.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.references.iter().flatten()
    }

    /// The receiver of a method call; `None` if it is part of the function's name.
    pub(crate) fn target<'e>(&self, expr: &Expr, call: &'e Call) -> Option<&'e Expr> {
        let is_name = matches!(self.reference(expr), Some(Reference::Call { qualified: true, .. }));
        call.target.as_ref().filter(|_| !is_name)
    }

    /// The name of the called function.
    pub(crate) fn function(&self, expr: &Expr) -> Option<&'static str> {
        match self.reference(expr) {
            Some(Reference::Call { function, .. }) => Some(function.name),
            _ => None,
        }
    }

    /// The candidate overloads of a call.
    pub(crate) fn overloads(&self, expr: &Expr) -> &[&'static Overload] {
        match self.reference(expr) {
            Some(Reference::Call { overloads, .. }) => overloads,
            _ => &[],
        }
    }
}

/// Checks an expression of `nodes` nodes.
pub(crate) fn check(
    root: &Expr,
    nodes: usize,
    scope: &Scope,
    issues: &mut Issues,
    allowance: &mut Allowance,
) -> Option<Checked> {
    let mut checker = Checker {
        scope,
        issues,
        unifier: Unifier::default(),
        scopes: Vec::new(),
        types: vec![None; nodes],
        references: vec![None; nodes],
    };
    checker.check(root);
    let Checker { types, references, unifier, issues, .. } = checker;
    let resolve = |t: Option<Type>| unifier.resolve(&t.unwrap_or(Type::Dyn), true);
    let types = types.into_iter().map(resolve).collect();
    allowance.spend_visits(unifier.visits());
    if unifier.is_exceeded() {
        issues.report_only(format!("type size exceeds limit: {NODES_MAX}"));
    }
    if !issues.is_empty() {
        return None;
    }
    let checked = Checked { types, references };
    literals::check(root, &checked, issues, allowance);
    issues.is_empty().then_some(checked)
}

struct Checker<'a> {
    scope: &'a Scope,
    issues: &'a mut Issues,
    unifier: Unifier,
    /// The variables of macros, innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &Expr) {
        let found = match &expr.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct(made) => self.make_struct(expr, made),
            Kind::Comprehension(fold) => self.fold(fold),
        };
        self.types[expr.id as usize] = Some(found);
    }

    /// The type found for a node.
    fn type_of(&self, expr: &Expr) -> Type {
        self.types[expr.id as usize].clone().unwrap_or(Type::Error)
    }

    fn refer(&mut self, expr: &Expr, reference: Reference) {
        self.references[expr.id as usize] = Some(reference);
    }

    fn wrong(&mut self, at: u32, message: String) -> Type {
        self.issues.report(Some(at), message);
        Type::Error
    }

    fn undeclared(&mut self, at: u32, name: &str) -> Type {
        self.wrong(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn mismatch(&mut self, at: u32, expected: &Type, found: &Type) -> Type {
        self.wrong(at, format!("expected type '{expected}' but found '{found}'"))
    }

    /// Resolves a name, plain or dotted.
    fn look_up(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, t)) = self.scopes.iter().rev().find(|(n, _)| &**n == name) {
            return Some((t.clone(), Reference::Local));
        }
        if let Some((index, t)) = self.scope.variable(name) {
            return Some((t, Reference::Variable(index)));
        }
        let named = self.scope.made_type(name).or_else(|| functions::named_type(name))?;
        Some((Type::type_of(named.clone()), Reference::Type(named)))
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Type {
        match self.look_up(name) {
            Some((t, reference)) => {
                self.refer(expr, reference);
                t
            }
            None => self.undeclared(expr.at, name),
        }
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> Type {
        // A dotted name can be a single name, for example of a type.
        if !select.test_only
            && let Some(name) = expr.qualified_name()
            && let Some((t, reference)) = self.look_up(&name)
        {
            self.refer(expr, reference);
            return t;
        }
        let field = self.field(expr, &select.operand, &select.field, false);
        if select.test_only { Type::Bool } else { self.unifier.resolve(&field, false) }
    }

    /// The type of a field of `operand`.
    fn field(&mut self, expr: &Expr, operand: &Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.unifier.resolve(&self.type_of(operand), false);
        let (target, is_optional) = match &operand {
            Type::Optional(inner) => ((**inner).clone(), true),
            other => (other.clone(), false),
        };
        let result = match &target {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(object) => match object.field(field) {
                Some(field) => Type::of(field.declaration()),
                None => self.wrong(expr.at, format!("undefined field '{field}'")),
            },
            Type::Struct(name) => {
                self.wrong(expr.at, format!("unexpected failed resolution of '{name}'"))
            }
            Type::Made(name) => self.made_field(expr.at, name, field),
            Type::Param(_) => {
                self.unifier.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other if other.is_dyn_or_error() => Type::Dyn,
            other => {
                self.wrong(expr.at, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(result) } else { result }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Type {
        if &*call.function == "_?._" {
            return self.optional_field(expr, call);
        }
        call.args.iter().for_each(|arg| self.check(arg));
        let name = call.function.strip_prefix('.').unwrap_or(&call.function);
        let Some(target) = &call.target else {
            return match self.scope.function(name) {
                Some(function) => self.overload(expr, function, None, &call.args, false),
                None => self.undeclared(expr.at, name),
            };
        };
        if let Some(prefix) = target.qualified_name()
            && let Some(function) = self.scope.function(&format!("{prefix}.{name}"))
        {
            return self.overload(expr, function, None, &call.args, true);
        }
        self.check(target);
        match self.scope.function(name) {
            Some(function) => self.overload(expr, function, Some(target), &call.args, false),
            None => self.undeclared(expr.at, name),
        }
    }

    /// Checks `operand.?field`, which the parser represents as a call with a string literal.
    fn optional_field(&mut self, expr: &Expr, call: &Call) -> Type {
        let [operand, field] = &call.args[..] else {
            let message = "unsupported optional field selection: incorrect signature.";
            let message = format!("{message} argument count: {}", call.args.len());
            return self.wrong(expr.at, message);
        };
        let Some(Literal::String(name)) = field.as_literal() else {
            return self.wrong(field.at, "unsupported optional field selection".to_owned());
        };
        self.types[field.id as usize] = Some(Type::String);
        let result = self.field(expr, operand, name, true);
        let function = library::find("_?._").expect("the library has it");
        let overloads = function.overloads.iter().collect();
        self.refer(expr, Reference::Call { function, overloads, qualified: false });
        self.unifier.resolve(&result, false)
    }

    /// Finds the overloads of `function` that match the arguments, and their result type.
    fn overload(
        &mut self,
        expr: &Expr,
        function: &'static Function,
        target: Option<&Expr>,
        args: &[Expr],
        qualified: bool,
    ) -> Type {
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logic(expr, function, args);
        }
        let given: Vec<Type> = target.into_iter().chain(args).map(|e| self.type_of(e)).collect();
        let mut fitting = Vec::new();
        let mut result: Option<Type> = None;
        for overload in &function.overloads {
            if overload.is_member != target.is_some() {
                continue;
            }
            let (params, returned) = overload.instantiate(|| self.unifier.fresh());
            if !self.unifier.all_assignable(&given, &params) {
                continue;
            }
            fitting.push(overload);
            let returned = self.unifier.resolve(&returned, false);
            result = Some(match result {
                None => returned,
                Some(Type::Dyn) => Type::Dyn,
                Some(before) if self.unifier.is_same(&before, &returned) => before,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let given: Vec<Type> = given.iter().map(|t| self.unifier.resolve(t, true)).collect();
            return self.no_overload(expr, function.name, target.is_some(), &given);
        };
        let overloads = fitting.into();
        self.refer(expr, Reference::Call { function, overloads, qualified });
        result
    }

    fn no_overload(&mut self, expr: &Expr, name: &str, member: bool, given: &[Type]) -> Type {
        let names = |types: &[Type]| {
            let names: Vec<String> = types.iter().map(Type::to_string).collect();
            names.join(", ")
        };
        let signature = match given {
            [target, args @ ..] if member => format!("{target}.({})", names(args)),
            args => format!("({})", names(args)),
        };
        let message = format!("found no matching overload for '{name}' applied to '{signature}'");
        self.wrong(expr.at, message)
    }

    /// Checks `&&` and `||`, which report each operand that is not a `bool`.
    fn logic(&mut self, expr: &Expr, function: &'static Function, args: &[Expr]) -> Type {
        let mut ok = true;
        for arg in args {
            let found = self.type_of(arg);
            if !self.unifier.assignable(&found, &Type::Bool) {
                self.mismatch(arg.at, &Type::Bool, &found);
                ok = false;
            }
        }
        if !ok {
            return Type::Error;
        }
        let overloads = function.overloads.iter().collect();
        self.refer(expr, Reference::Call { function, overloads, qualified: false });
        Type::Bool
    }

    fn list(&mut self, items: &[Item]) -> Type {
        let mut joined = None;
        for Item { value, optional } in items {
            self.check(value);
            let found = self.entry_type(value, *optional);
            joined = Some(self.join(joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.unifier.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for Entry { key, value, optional } in entries {
            self.check(key);
            let found = self.type_of(key);
            keys = Some(self.join(keys, found));
            self.check(value);
            let found = self.entry_type(value, *optional);
            values = Some(self.join(values, found));
        }
        match (keys, values) {
            (Some(keys), Some(values)) => Type::map(keys, values),
            _ => {
                let keys = self.unifier.fresh();
                Type::map(keys, self.unifier.fresh())
            }
        }
    }

    /// The type of the value that an item or entry inserts.
    fn entry_type(&mut self, value: &Expr, optional: bool) -> Type {
        let found = self.type_of(value);
        match found {
            Type::Optional(inner) if optional => (*inner).clone(),
            found if optional && !matches!(found, Type::Dyn) => {
                self.mismatch(value.at, &Type::optional(found.clone()), &found);
                found
            }
            found => found,
        }
    }

    /// The common type of the items of a literal so far and one more.
    fn join(&mut self, before: Option<Type>, found: Type) -> Type {
        let Some(before) = before else { return found };
        if self.unifier.assignable(&before, &found) {
            return self.unifier.most_general(&before, &found);
        }
        // Mixed types in literals are checked when all types are known.
        Type::Dyn
    }

    /// Checks a struct literal. Expressions can only construct patches.
    fn make_struct(&mut self, expr: &Expr, made: &Struct) -> Type {
        let result = match self.look_up(&made.name) {
            Some((Type::Type(Some(named)), reference)) => match &*named {
                Type::Made(name) => {
                    self.refer(expr, reference);
                    made.fields.iter().for_each(|field| self.init(name, field));
                    return (*named).clone();
                }
                named => self.wrong(expr.at, format!("'{named}' is not a message type")),
            },
            Some((other, _)) => self.wrong(expr.at, format!("'{other}' is not a type")),
            None => return self.undeclared(expr.at, &made.name),
        };
        made.fields.iter().for_each(|field| self.check(&field.value));
        result
    }

    /// Checks the value of a field in a struct literal.
    fn init(&mut self, made: &str, field: &Field) {
        self.check(&field.value);
        let expected = self.made_field(field.at, made, &field.name);
        let found = self.entry_type(&field.value, field.optional);
        if !self.unifier.assignable(&found, &expected) {
            let name = &field.name;
            let message = format!(
                "expected type of field '{name}' is '{expected}' but provided type is '{found}'"
            );
            self.wrong(field.at, message);
        }
    }

    /// The type of a field of a constructed value. The fields of a JSON patch are known; an object
    /// may have any field.
    fn made_field(&mut self, at: u32, made: &str, field: &str) -> Type {
        match made::field_type(made, field) {
            Some(found) => found,
            None => self.wrong(at, format!("undefined field '{field}'")),
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
