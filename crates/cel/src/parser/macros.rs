//! Macros: calls that the parser expands to other expressions.

use std::sync::Arc;

use super::{Parse, Parser};
use crate::ast::{
    ACCU, ACCU_OLD, Call, Comprehension, Entry, Expr, Id, Item, Kind, Literal, Select,
};

/// The maximum number of nodes of an expression after macro expansion.
const NODES_MAX: Id = 200_000;

/// A loop variable that expressions cannot name.
const UNUSED: &str = "#unused";

/// A macro: its name, its number of arguments, and its expansion.
struct Macro {
    name: &'static str,
    arity: usize,
    expand: fn(&mut NodeBuilder<'_, '_>, Expr, Vec<Expr>) -> Expansion,
}

/// The expansion, or an error about the arguments with its position.
type Expansion = Result<Expr, (u32, String)>;

const fn receiver(
    name: &'static str,
    arity: usize,
    expand: fn(&mut NodeBuilder<'_, '_>, Expr, Vec<Expr>) -> Expansion,
) -> Macro {
    Macro { name, arity, expand }
}

/// The macros with a receiver; only `has` has none.
const MACROS: &[Macro] = &[
    receiver("all", 2, |m, target, args| quantifier(m, target, args, all)),
    receiver("all", 3, |m, target, args| quantifier(m, target, args, all)),
    receiver("exists", 2, |m, target, args| quantifier(m, target, args, exists)),
    receiver("exists", 3, |m, target, args| quantifier(m, target, args, exists)),
    receiver("exists_one", 2, |m, target, args| quantifier(m, target, args, exists_one)),
    receiver("exists_one", 3, |m, target, args| quantifier(m, target, args, exists_one)),
    receiver("existsOne", 3, |m, target, args| quantifier(m, target, args, exists_one)),
    receiver("map", 2, map),
    receiver("map", 3, map),
    receiver("filter", 2, filter),
    receiver("transformList", 3, |m, target, args| transform(m, target, args, Into::List)),
    receiver("transformList", 4, |m, target, args| transform(m, target, args, Into::List)),
    receiver("transformMap", 3, |m, target, args| transform(m, target, args, Into::Map)),
    receiver("transformMap", 4, |m, target, args| transform(m, target, args, Into::Map)),
    receiver("transformMapEntry", 3, |m, target, args| transform(m, target, args, Into::Entries)),
    receiver("transformMapEntry", 4, |m, target, args| transform(m, target, args, Into::Entries)),
    receiver("optMap", 2, |m, target, args| opt_map(m, target, args, "optMap", true)),
    receiver("optFlatMap", 2, |m, target, args| opt_map(m, target, args, "optFlatMap", false)),
    receiver("sortBy", 2, sort_by),
];

impl Parser<'_> {
    /// Returns a call, or its expansion if it calls a macro.
    pub(super) fn call_or_macro(
        &mut self,
        id: Id,
        at: u32,
        function: Arc<str>,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Parse<Expr> {
        let expansion = match target {
            None if &*function == "has" && args.len() == 1 => {
                has(&mut NodeBuilder { parser: self, at }, args)
            }
            Some(target) if self.bindings && is_bind(&target, &function, &args) => {
                bind(&mut NodeBuilder { parser: self, at }, args)
            }
            Some(target) => {
                let called = |m: &&Macro| *m.name == *function && m.arity == args.len();
                match MACROS.iter().find(called) {
                    Some(found) => {
                        (found.expand)(&mut NodeBuilder { parser: self, at }, target, args)
                    }
                    None => {
                        let call = Call { function, target: Some(target), args };
                        return Ok(Expr { id, at, kind: Kind::Call(Box::new(call)) });
                    }
                }
            }
            None => {
                let call = Call { function, target: None, args };
                return Ok(Expr { id, at, kind: Kind::Call(Box::new(call)) });
            }
        };
        // Some macros copy their receiver, so a chain of them grows exponentially.
        if self.nodes > NODES_MAX {
            let message = format!("expression node limit exceeded: {NODES_MAX}");
            return self.wrong(None, message);
        }
        Ok(expansion.unwrap_or_else(|(at, message)| {
            self.issues.report(Some(at), message);
            self.nothing(at)
        }))
    }
}

/// Whether this is `cel.bind(name, value, result)`; its receiver is only a name.
fn is_bind(target: &Expr, function: &str, args: &[Expr]) -> bool {
    function == "bind" && args.len() == 3 && target.as_ident().is_some_and(|name| &**name == "cel")
}

fn bind(builder: &mut NodeBuilder<'_, '_>, mut args: Vec<Expr>) -> Expansion {
    let message = "cel.bind() variable names must be simple identifiers";
    let name = simple_name(&args[0], message)?.clone();
    let result = args.remove(2);
    let value = args.remove(1);
    Ok(builder.bind(name, value, result))
}

/// Creates nodes at the position of the macro.
struct NodeBuilder<'m, 'p> {
    parser: &'m mut Parser<'p>,
    at: u32,
}

impl NodeBuilder<'_, '_> {
    fn node(&mut self, kind: Kind) -> Expr {
        Expr { id: self.parser.id(), at: self.at, kind }
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(Kind::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(Kind::Ident(name.into()))
    }

    fn accu(&mut self) -> Expr {
        self.ident(ACCU)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        let call = Call { function: function.into(), target: None, args };
        self.node(Kind::Call(Box::new(call)))
    }

    fn method(&mut self, function: &str, target: Expr) -> Expr {
        let call = Call { function: function.into(), target: Some(target), args: Vec::new() };
        self.node(Kind::Call(Box::new(call)))
    }

    fn list(&mut self, items: Vec<Expr>) -> Expr {
        let items = items.into_iter().map(|value| Item { value, optional: false });
        let items = items.collect();
        self.node(Kind::List(items))
    }

    fn empty_map(&mut self) -> Expr {
        self.node(Kind::Map(Vec::<Entry>::new()))
    }

    /// Binds a name to `value` in `result`.
    fn bind(&mut self, name: Arc<str>, value: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        let var = UNUSED.into();
        self.node(Kind::Comprehension(Box::new(Comprehension {
            range,
            var,
            var2: None,
            accu: name,
            init: value,
            condition,
            step,
            result,
        })))
    }

    /// Copies an expression with new node ids.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let mut copy = expr.clone();
        renumber(&mut copy, &mut self.parser.nodes);
        copy
    }

    /// A loop over `range` with the given variables.
    fn fold(&mut self, range: Expr, vars: Vars, fold: Fold) -> Expr {
        let Fold { init, condition, step, result } = fold;
        let Vars { first: var, second: var2 } = vars;
        let accu = ACCU.into();
        let fold = Comprehension { range, var, var2, accu, init, condition, step, result };
        self.node(Kind::Comprehension(Box::new(fold)))
    }
}

struct Fold {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

struct Vars {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

fn simple_name<'e>(arg: &'e Expr, message: &str) -> Result<&'e Arc<str>, (u32, String)> {
    arg.as_ident().ok_or_else(|| (arg.at, message.to_owned()))
}

/// The loop variable of a one-variable macro.
fn var(arg: &Expr, message: &str) -> Result<Vars, (u32, String)> {
    let first = simple_name(arg, message)?;
    not_accu(arg, first)?;
    Ok(Vars { first: first.clone(), second: None })
}

fn not_accu(arg: &Expr, name: &str) -> Result<(), (u32, String)> {
    if name == ACCU || name == ACCU_OLD {
        return Err((arg.at, "iteration variable overwrites accumulator variable".to_owned()));
    }
    Ok(())
}

/// The loop variables of a two-variable macro.
fn two_vars(args: &[Expr]) -> Result<Vars, (u32, String)> {
    const MESSAGE: &str = "argument must be a simple name";
    let first = simple_name(&args[0], MESSAGE)?;
    let second = simple_name(&args[1], MESSAGE)?;
    if first == second {
        return Err((args[1].at, format!("duplicate variable name: {first}")));
    }
    not_accu(&args[0], first)?;
    not_accu(&args[1], second)?;
    Ok(Vars { first: first.clone(), second: Some(second.clone()) })
}

fn has(builder: &mut NodeBuilder<'_, '_>, mut args: Vec<Expr>) -> Expansion {
    let arg = args.remove(0);
    match arg.kind {
        Kind::Select(select) => {
            let Select { operand, field, .. } = *select;
            let select = Select { operand, field, test_only: true };
            Ok(builder.node(Kind::Select(Box::new(select))))
        }
        _ => Err((arg.at, "invalid argument to has() macro".to_owned())),
    }
}

fn quantifier(
    builder: &mut NodeBuilder<'_, '_>,
    target: Expr,
    mut args: Vec<Expr>,
    fold: fn(&mut NodeBuilder<'_, '_>, Expr) -> Fold,
) -> Expansion {
    let vars = match args.len() {
        2 => var(&args[0], "argument must be a simple name")?,
        _ => two_vars(&args)?,
    };
    let predicate = args.remove(args.len() - 1);
    let fold = fold(builder, predicate);
    Ok(builder.fold(target, vars, fold))
}

fn all(builder: &mut NodeBuilder<'_, '_>, predicate: Expr) -> Fold {
    let init = builder.literal(Literal::Bool(true));
    let accu = builder.accu();
    let condition = builder.call("@not_strictly_false", vec![accu]);
    let accu = builder.accu();
    let step = builder.call("_&&_", vec![accu, predicate]);
    Fold { init, condition, step, result: builder.accu() }
}

fn exists(builder: &mut NodeBuilder<'_, '_>, predicate: Expr) -> Fold {
    let init = builder.literal(Literal::Bool(false));
    let accu = builder.accu();
    let not = builder.call("!_", vec![accu]);
    let condition = builder.call("@not_strictly_false", vec![not]);
    let accu = builder.accu();
    let step = builder.call("_||_", vec![accu, predicate]);
    Fold { init, condition, step, result: builder.accu() }
}

fn exists_one(builder: &mut NodeBuilder<'_, '_>, predicate: Expr) -> Fold {
    let init = builder.literal(Literal::Int(0));
    let condition = builder.literal(Literal::Bool(true));
    let (accu, one) = (builder.accu(), builder.literal(Literal::Int(1)));
    let more = builder.call("_+_", vec![accu, one]);
    let same = builder.accu();
    let step = builder.call("_?_:_", vec![predicate, more, same]);
    let (accu, one) = (builder.accu(), builder.literal(Literal::Int(1)));
    let result = builder.call("_==_", vec![accu, one]);
    Fold { init, condition, step, result }
}

/// A loop that builds a list or map by `step`, for the items that match `filter`.
fn collect(
    builder: &mut NodeBuilder<'_, '_>,
    target: Expr,
    vars: Vars,
    init: Expr,
    filter: Option<Expr>,
    mut step: Expr,
) -> Expr {
    if let Some(filter) = filter {
        let same = builder.accu();
        step = builder.call("_?_:_", vec![filter, step, same]);
    }
    let condition = builder.literal(Literal::Bool(true));
    let result = builder.accu();
    builder.fold(target, vars, Fold { init, condition, step, result })
}

fn map(builder: &mut NodeBuilder<'_, '_>, target: Expr, mut args: Vec<Expr>) -> Expansion {
    let vars = var(&args[0], "argument is not an identifier")?;
    let transform = args.remove(args.len() - 1);
    let filter = (args.len() == 2).then(|| args.remove(1));
    let init = builder.list(Vec::new());
    let accu = builder.accu();
    let item = builder.list(vec![transform]);
    let step = builder.call("_+_", vec![accu, item]);
    Ok(collect(builder, target, vars, init, filter, step))
}

fn filter(builder: &mut NodeBuilder<'_, '_>, target: Expr, mut args: Vec<Expr>) -> Expansion {
    let vars = var(&args[0], "argument is not an identifier")?;
    let filter = args.remove(1);
    let item = args.remove(0);
    let init = builder.list(Vec::new());
    let accu = builder.accu();
    let item = builder.list(vec![item]);
    let step = builder.call("_+_", vec![accu, item]);
    Ok(collect(builder, target, vars, init, Some(filter), step))
}

/// The result of a transforming macro.
#[derive(Clone, Copy)]
enum Into {
    List,
    Map,
    Entries,
}

fn transform(
    builder: &mut NodeBuilder<'_, '_>,
    target: Expr,
    mut args: Vec<Expr>,
    into: Into,
) -> Expansion {
    let vars = two_vars(&args)?;
    let transform = args.remove(args.len() - 1);
    let filter = (args.len() == 3).then(|| args.remove(2));
    let init = match into {
        Into::List => builder.list(Vec::new()),
        Into::Map | Into::Entries => builder.empty_map(),
    };
    let accu = builder.accu();
    let step = match into {
        Into::List => {
            let item = builder.list(vec![transform]);
            builder.call("_+_", vec![accu, item])
        }
        Into::Map => {
            let key = builder.ident(&vars.first);
            builder.call("cel.@mapInsert", vec![accu, key, transform])
        }
        Into::Entries => builder.call("cel.@mapInsert", vec![accu, transform]),
    };
    Ok(collect(builder, target, vars, init, filter, step))
}

fn opt_map(
    builder: &mut NodeBuilder<'_, '_>,
    target: Expr,
    mut args: Vec<Expr>,
    name: &str,
    wrap: bool,
) -> Expansion {
    let message = format!("{name}() variable name must be a simple identifier");
    let var = simple_name(&args[0], &message)?.clone();
    let mapped = args.remove(1);
    let copy = builder.copy(&target);
    let has_value = builder.method("hasValue", target);
    let value = builder.method("value", copy);
    let mut bound = builder.bind(var, value, mapped);
    if wrap {
        bound = builder.call("optional.of", vec![bound]);
    }
    let none = builder.call("optional.none", Vec::new());
    Ok(builder.call("_?_:_", vec![has_value, bound, none]))
}

fn sort_by(builder: &mut NodeBuilder<'_, '_>, target: Expr, mut args: Vec<Expr>) -> Expansion {
    const SORTED: &str = "@__sortBy_input__";
    let is_sortable = matches!(
        target.kind,
        Kind::List(_) | Kind::Select(_) | Kind::Ident(_) | Kind::Comprehension(_) | Kind::Call(_)
    );
    if !is_sortable {
        let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                       select expression";
        return Err((target.at, message.to_owned()));
    }
    let keys = {
        let input = builder.ident(SORTED);
        let vars = var(&args[0], "argument is not an identifier")?;
        let key = args.remove(1);
        let init = builder.list(Vec::new());
        let accu = builder.accu();
        let item = builder.list(vec![key]);
        let step = builder.call("_+_", vec![accu, item]);
        collect(builder, input, vars, init, None, step)
    };
    let input = builder.ident(SORTED);
    let call =
        Call { function: "@sortByAssociatedKeys".into(), target: Some(input), args: vec![keys] };
    let sorted = builder.node(Kind::Call(Box::new(call)));
    Ok(builder.bind(SORTED.into(), target, sorted))
}

/// Assigns new ids to all nodes, starting at `next`.
fn renumber(expr: &mut Expr, next: &mut Id) {
    expr.id = *next;
    *next += 1;
    match &mut expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select(select) => renumber(&mut select.operand, next),
        Kind::Call(call) => {
            call.target.iter_mut().chain(&mut call.args).for_each(|e| renumber(e, next));
        }
        Kind::List(items) => items.iter_mut().for_each(|item| renumber(&mut item.value, next)),
        Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
            renumber(&mut entry.key, next);
            renumber(&mut entry.value, next);
        }),
        Kind::Struct(made) => made.fields.iter_mut().for_each(|f| renumber(&mut f.value, next)),
        Kind::Comprehension(fold) => {
            let Comprehension { range, init, condition, step, result, .. } = &mut **fold;
            [range, init, condition, step, result].into_iter().for_each(|e| renumber(e, next));
        }
    }
}
