//! Macros: calls that become other expressions while they are parsed.

use std::sync::Arc;

use super::{Parse, Parser};
use crate::ast::{
    ACCU, ACCU_OLD, Call, Comprehension, Entry, Expr, Id, Item, Kind, Literal, Select,
};

/// The most nodes of an expression whose macros are expanded.
const NODES_MAX: Id = 200_000;

/// A loop variable that nothing can name.
const UNUSED: &str = "#unused";

/// A macro: its name, how many arguments it has, and what it becomes.
struct Macro {
    name: &'static str,
    arity: usize,
    expand: fn(&mut Maker<'_, '_>, Expr, Vec<Expr>) -> Expansion,
}

/// What a macro became, or what is wrong with its arguments and where.
type Expansion = Result<Expr, (u32, String)>;

const fn receiver(
    name: &'static str,
    arity: usize,
    expand: fn(&mut Maker<'_, '_>, Expr, Vec<Expr>) -> Expansion,
) -> Macro {
    Macro { name, arity, expand }
}

/// The macros that are called on something; `has` is the one that is not.
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
    /// A call, or what it becomes if it is a macro's.
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
                has(&mut Maker { parser: self, at }, args)
            }
            Some(target) if self.bindings && is_bind(&target, &function, &args) => {
                bind(&mut Maker { parser: self, at }, args)
            }
            Some(target) => {
                let called = |m: &&Macro| *m.name == *function && m.arity == args.len();
                match MACROS.iter().find(called) {
                    Some(found) => (found.expand)(&mut Maker { parser: self, at }, target, args),
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
        // Some macros copy what they are called on, which doubles with each in a chain.
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

/// Whether this is `cel.bind(name, value, result)`, which is called on nothing but a name.
fn is_bind(target: &Expr, function: &str, args: &[Expr]) -> bool {
    function == "bind" && args.len() == 3 && target.as_ident().is_some_and(|name| &**name == "cel")
}

fn bind(maker: &mut Maker<'_, '_>, mut args: Vec<Expr>) -> Expansion {
    let message = "cel.bind() variable names must be simple identifiers";
    let name = simple_name(&args[0], message)?.clone();
    let result = args.remove(2);
    let value = args.remove(1);
    Ok(maker.bind(name, value, result))
}

/// Makes nodes that stand where the macro stands.
struct Maker<'m, 'p> {
    parser: &'m mut Parser<'p>,
    at: u32,
}

impl Maker<'_, '_> {
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

    /// A name for `value` in `result`.
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

    /// The same expression with nodes of its own.
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

/// The loop variable of a macro with one.
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

/// The loop variables of a macro with two.
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

fn has(maker: &mut Maker<'_, '_>, mut args: Vec<Expr>) -> Expansion {
    let arg = args.remove(0);
    match arg.kind {
        Kind::Select(select) => {
            let Select { operand, field, .. } = *select;
            let select = Select { operand, field, test_only: true };
            Ok(maker.node(Kind::Select(Box::new(select))))
        }
        _ => Err((arg.at, "invalid argument to has() macro".to_owned())),
    }
}

fn quantifier(
    maker: &mut Maker<'_, '_>,
    target: Expr,
    mut args: Vec<Expr>,
    fold: fn(&mut Maker<'_, '_>, Expr) -> Fold,
) -> Expansion {
    let vars = match args.len() {
        2 => var(&args[0], "argument must be a simple name")?,
        _ => two_vars(&args)?,
    };
    let predicate = args.remove(args.len() - 1);
    let fold = fold(maker, predicate);
    Ok(maker.fold(target, vars, fold))
}

fn all(maker: &mut Maker<'_, '_>, predicate: Expr) -> Fold {
    let init = maker.literal(Literal::Bool(true));
    let accu = maker.accu();
    let condition = maker.call("@not_strictly_false", vec![accu]);
    let accu = maker.accu();
    let step = maker.call("_&&_", vec![accu, predicate]);
    Fold { init, condition, step, result: maker.accu() }
}

fn exists(maker: &mut Maker<'_, '_>, predicate: Expr) -> Fold {
    let init = maker.literal(Literal::Bool(false));
    let accu = maker.accu();
    let not = maker.call("!_", vec![accu]);
    let condition = maker.call("@not_strictly_false", vec![not]);
    let accu = maker.accu();
    let step = maker.call("_||_", vec![accu, predicate]);
    Fold { init, condition, step, result: maker.accu() }
}

fn exists_one(maker: &mut Maker<'_, '_>, predicate: Expr) -> Fold {
    let init = maker.literal(Literal::Int(0));
    let condition = maker.literal(Literal::Bool(true));
    let (accu, one) = (maker.accu(), maker.literal(Literal::Int(1)));
    let more = maker.call("_+_", vec![accu, one]);
    let same = maker.accu();
    let step = maker.call("_?_:_", vec![predicate, more, same]);
    let (accu, one) = (maker.accu(), maker.literal(Literal::Int(1)));
    let result = maker.call("_==_", vec![accu, one]);
    Fold { init, condition, step, result }
}

/// A loop that makes a list or map: `step`, only where `filter` holds.
fn collect(
    maker: &mut Maker<'_, '_>,
    target: Expr,
    vars: Vars,
    init: Expr,
    filter: Option<Expr>,
    mut step: Expr,
) -> Expr {
    if let Some(filter) = filter {
        let same = maker.accu();
        step = maker.call("_?_:_", vec![filter, step, same]);
    }
    let condition = maker.literal(Literal::Bool(true));
    let result = maker.accu();
    maker.fold(target, vars, Fold { init, condition, step, result })
}

fn map(maker: &mut Maker<'_, '_>, target: Expr, mut args: Vec<Expr>) -> Expansion {
    let vars = var(&args[0], "argument is not an identifier")?;
    let transform = args.remove(args.len() - 1);
    let filter = (args.len() == 2).then(|| args.remove(1));
    let init = maker.list(Vec::new());
    let accu = maker.accu();
    let item = maker.list(vec![transform]);
    let step = maker.call("_+_", vec![accu, item]);
    Ok(collect(maker, target, vars, init, filter, step))
}

fn filter(maker: &mut Maker<'_, '_>, target: Expr, mut args: Vec<Expr>) -> Expansion {
    let vars = var(&args[0], "argument is not an identifier")?;
    let filter = args.remove(1);
    let item = args.remove(0);
    let init = maker.list(Vec::new());
    let accu = maker.accu();
    let item = maker.list(vec![item]);
    let step = maker.call("_+_", vec![accu, item]);
    Ok(collect(maker, target, vars, init, Some(filter), step))
}

/// What a transforming macro makes.
#[derive(Clone, Copy)]
enum Into {
    List,
    Map,
    Entries,
}

fn transform(
    maker: &mut Maker<'_, '_>,
    target: Expr,
    mut args: Vec<Expr>,
    into: Into,
) -> Expansion {
    let vars = two_vars(&args)?;
    let transform = args.remove(args.len() - 1);
    let filter = (args.len() == 3).then(|| args.remove(2));
    let init = match into {
        Into::List => maker.list(Vec::new()),
        Into::Map | Into::Entries => maker.empty_map(),
    };
    let accu = maker.accu();
    let step = match into {
        Into::List => {
            let item = maker.list(vec![transform]);
            maker.call("_+_", vec![accu, item])
        }
        Into::Map => {
            let key = maker.ident(&vars.first);
            maker.call("cel.@mapInsert", vec![accu, key, transform])
        }
        Into::Entries => maker.call("cel.@mapInsert", vec![accu, transform]),
    };
    Ok(collect(maker, target, vars, init, filter, step))
}

fn opt_map(
    maker: &mut Maker<'_, '_>,
    target: Expr,
    mut args: Vec<Expr>,
    name: &str,
    wrap: bool,
) -> Expansion {
    let message = format!("{name}() variable name must be a simple identifier");
    let var = simple_name(&args[0], &message)?.clone();
    let mapped = args.remove(1);
    let copy = maker.copy(&target);
    let has_value = maker.method("hasValue", target);
    let value = maker.method("value", copy);
    let mut bound = maker.bind(var, value, mapped);
    if wrap {
        bound = maker.call("optional.of", vec![bound]);
    }
    let none = maker.call("optional.none", Vec::new());
    Ok(maker.call("_?_:_", vec![has_value, bound, none]))
}

fn sort_by(maker: &mut Maker<'_, '_>, target: Expr, mut args: Vec<Expr>) -> Expansion {
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
        let input = maker.ident(SORTED);
        let vars = var(&args[0], "argument is not an identifier")?;
        let key = args.remove(1);
        let init = maker.list(Vec::new());
        let accu = maker.accu();
        let item = maker.list(vec![key]);
        let step = maker.call("_+_", vec![accu, item]);
        collect(maker, input, vars, init, None, step)
    };
    let input = maker.ident(SORTED);
    let call =
        Call { function: "@sortByAssociatedKeys".into(), target: Some(input), args: vec![keys] };
    let sorted = maker.node(Kind::Call(Box::new(call)));
    Ok(maker.bind(SORTED.into(), target, sorted))
}

/// Gives all nodes numbers of their own, from `next`.
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
