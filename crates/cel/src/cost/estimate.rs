//! The cost estimate of an expression.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Estimate, LIST, MAP, Part, STRUCT, declared_size};
use crate::ast::{ACCU, ACCU_OLD, Call, Comprehension, Expr, Id, Item, Kind, Literal, Select};
use crate::checker::Checked;
use crate::scope::Scope;
use crate::types::Type;

/// The minimum and maximum cost of evaluating `root`.
pub(crate) fn estimate(root: &Expr, checked: &Checked, scope: &Scope) -> Estimate {
    let mut estimator = Estimator {
        checked,
        scope,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(root)
}

pub(super) struct Estimator<'a> {
    pub(super) checked: &'a Checked,
    pub(super) scope: &'a Scope,
    /// The path from a variable to a node's value.
    paths: HashMap<Id, Vec<Part>>,
    sizes: HashMap<Id, Estimate>,
    entries: HashMap<Id, Entries>,
    locals: Vec<Local>,
}

/// The sizes of a list's indices and items, or of a map's keys and values.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Estimate,
    value: Estimate,
}

/// A variable of a macro.
struct Local {
    name: Arc<str>,
    path: Vec<Part>,
    size: Option<Estimate>,
    entries: Option<Entries>,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self { key: self.key.or(other.key), value: self.value.or(other.value), ..self }
    }
}

impl Estimator<'_> {
    pub(super) fn cost(&mut self, expr: &Expr) -> Estimate {
        match &expr.kind {
            Kind::Literal(_) => Estimate::ZERO,
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![Part::Name(Arc::clone(name))],
                };
                self.paths.insert(expr.id, path);
                Estimate::fixed(1)
            }
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => self.list(expr, items),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Struct(made) => {
                let fields = made.fields.iter().map(|field| self.cost(&field.value));
                fields.fold(Estimate::fixed(STRUCT), Estimate::plus)
            }
            Kind::Comprehension(fold) if fold.is_bind() => self.bind(expr, fold),
            Kind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    pub(super) fn path(&self, expr: &Expr) -> Vec<Part> {
        if let Some(local) = expr.as_ident().and_then(|name| self.local(name)) {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn path_to(&self, expr: &Expr, part: Part) -> Vec<Part> {
        let mut path = self.path(expr);
        path.push(part);
        path
    }

    /// A node's path, if it begins at a variable other than an accumulator.
    pub(super) fn root_path(&self, expr: &Expr) -> Option<Vec<Part>> {
        let path = self.path(expr);
        let is_accu =
            matches!(path.first(), Some(Part::Name(n)) if &**n == ACCU || &**n == ACCU_OLD);
        (!path.is_empty() && !is_accu).then_some(path)
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> Estimate {
        // A dotted name is a single name.
        if self.checked.reference(expr).is_some()
            && let Some(name) = expr.qualified_name()
        {
            self.paths.insert(expr.id, vec![Part::Name(name.into())]);
            return Estimate::fixed(1);
        }
        let operand = self.cost(&select.operand);
        if select.test_only {
            return operand;
        }
        let costs = matches!(
            self.checked.type_of(&select.operand),
            Type::Map(_) | Type::Object(_) | Type::Struct(_) | Type::Param(_)
        );
        let path = self.path_to(&select.operand, Part::Name(Arc::clone(&select.field)));
        self.paths.insert(expr.id, path);
        operand.plus(Estimate::fixed(u64::from(costs)))
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Estimate {
        if &*call.function == "dyn"
            && let [arg] = &call.args[..]
        {
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return cost.plus(Estimate::fixed(1));
        }
        let mut costs = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            costs.push(self.cost(arg));
            self.size(arg);
        }
        let overloads = self.checked.overloads(expr);
        if overloads.is_empty() {
            return Estimate::ZERO;
        }
        let target = self.checked.target(expr, call);
        let mut sum = Estimate::ZERO;
        if let Some(target) = target {
            sum = self.cost(target);
            self.size(target);
        }
        let mut cost = Estimate { min: u64::MAX, max: 0 };
        let mut size: Option<Estimate> = None;
        for overload in overloads {
            let one = self.call_of(expr, call, target, overload.id, &costs);
            cost = cost.or(one.cost);
            size = match (size, one.size) {
                (Some(size), Some(one)) => Some(size.or(one)),
                (size, one) => size.or(one),
            };
            let part = match overload.id {
                "index_list" => Some(Part::Items),
                "index_map" => Some(Part::Values),
                _ => None,
            };
            if let (Some(part), [container, ..]) = (part, &call.args[..]) {
                size = self.entries_of(container).map(|entries| entries.value);
                let path = self.path_to(container, part);
                self.paths.insert(expr.id, path);
            }
            size = size.or_else(|| self.size(expr));
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        sum.plus(cost)
    }

    fn list(&mut self, expr: &Expr, items: &[Item]) -> Estimate {
        let empty = items.is_empty();
        let mut value = Estimate { min: if empty { 0 } else { u64::MAX }, max: 0 };
        let mut sum = Estimate::fixed(LIST);
        for item in items {
            sum = sum.plus(self.cost(&item.value));
            value = value.or(self.size_or_unknown(&item.value));
        }
        let entries = Entries { is_list: true, key: Estimate::fixed(1), value };
        self.entries.insert(expr.id, entries);
        sum
    }

    fn map(&mut self, expr: &Expr, entries: &[crate::ast::Entry]) -> Estimate {
        let none = Estimate { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let (mut key, mut value) = (none, none);
        let mut sum = Estimate::fixed(MAP);
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key));
            sum = sum.plus(self.cost(&entry.value));
            key = key.or(self.size_or_unknown(&entry.key));
            value = value.or(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(expr.id, Entries { is_list: false, key, value });
        sum
    }

    fn bind(&mut self, expr: &Expr, fold: &Comprehension) -> Estimate {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accu(fold);
        let sum = sum.plus(self.cost(&fold.result));
        self.copy_sizes(expr, &fold.result);
        self.locals.pop();
        sum
    }

    fn fold(&mut self, expr: &Expr, fold: &Comprehension) -> Estimate {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_accu(fold);
        self.push_variables(fold);
        let iterate = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.locals.truncate(self.locals.len() - 1 - usize::from(fold.var2.is_some()));
        let sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();

        let iterations = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Kind::List(_) | Kind::Map(_) => {
                self.sizes.insert(expr.id, iterations);
                if let Some(entries) = self.entries_of(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum.plus(iterations.times(iterate))
    }

    fn push_accu(&mut self, fold: &Comprehension) {
        let local = Local {
            name: Arc::clone(&fold.accu),
            path: self.path(&fold.init),
            size: self.size(&fold.init),
            entries: self.entries_of(&fold.init),
        };
        self.locals.push(local);
    }

    fn push_variables(&mut self, fold: &Comprehension) {
        let entries = self.entries_of(&fold.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.checked.type_of(&fold.range), Type::List(_)),
        };
        let (key, value) = (entries.map(|e| e.key), entries.map(|e| e.value));
        let key_part = if is_list { Part::Indices } else { Part::Keys };
        let value_part = if is_list { Part::Items } else { Part::Values };
        let mut push = |name: &Arc<str>, part, size| {
            let path = self.path_to(&fold.range, part);
            self.locals.push(Local { name: Arc::clone(name), path, size, entries: None });
        };
        match &fold.var2 {
            Some(var2) => {
                push(&fold.var, key_part, key);
                push(var2, value_part, value);
            }
            None if is_list => push(&fold.var, Part::Items, value),
            None => push(&fold.var, Part::Keys, key),
        }
    }
}

/// Sizes of values.
impl Estimator<'_> {
    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }

    /// The size of a node's value, if known.
    pub(super) fn size(&mut self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expr) {
            return Some(Estimate::fixed(size));
        }
        if let Some(size) = declared_size(self.scope, &self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr)) {
            return Some(Estimate::fixed(1));
        }
        expr.as_ident().and_then(|name| self.local(name)?.size)
    }

    pub(super) fn size_or_unknown(&mut self, expr: &Expr) -> Estimate {
        self.size(expr).unwrap_or(Estimate::UNKNOWN)
    }

    fn entries_of(&self, expr: &Expr) -> Option<Entries> {
        let known = self.entries.get(&expr.id).copied();
        known.or_else(|| expr.as_ident().and_then(|name| self.local(name)?.entries))
    }

    /// Joins the entries of both branches, or of both operands, to those of a node.
    pub(super) fn join_entries(&mut self, to: &Expr, a: &Expr, b: &Expr) {
        if let (Some(a), Some(b)) = (self.entries_of(a), self.entries_of(b)) {
            self.entries.insert(to.id, a.or(b));
        }
    }
}

/// The size of a literal.
fn written_size(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        Kind::Literal(Literal::String(text)) => Some(text.chars().count() as u64),
        Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len() as u64),
        Kind::Literal(_) => Some(1),
        Kind::List(items) => Some(items.len() as u64),
        Kind::Map(entries) => Some(entries.len() as u64),
        _ => None,
    }
}

fn is_scalar(t: &Type) -> bool {
    match t {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
