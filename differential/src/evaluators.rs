//! The evaluators: Pintle and other implementations.

use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use pintle_cel::{Bindings, Budget, COST_MAX, CompileError, Declaration, Environment, Merge};
use pintle_value::{Value, json};

use crate::VARIABLES;
use crate::plain::{Outcome, Plain, Type};

/// Evaluates expressions over [`VARIABLES`].
pub trait Evaluator {
    fn name(&self) -> &'static str;

    fn evaluate(&self, expression: &str) -> Outcome;
}

fn values() -> impl Iterator<Item = (&'static str, Value)> {
    VARIABLES
        .iter()
        .map(|(name, _, text)| (*name, json::parse(text.as_bytes()).expect("variables are JSON")))
}

/// Pintle's evaluator.
pub struct Pintle {
    environment: Environment,
    values: Vec<Value>,
}

impl Default for Pintle {
    fn default() -> Self {
        let declared = VARIABLES.iter().fold(Environment::new(), |environment, (name, t, _)| {
            environment.with(*name, declaration(&Type::read(t)))
        });
        Self { environment: declared, values: values().map(|(_, value)| value).collect() }
    }
}

fn declaration(t: &Type) -> Declaration {
    let size_max = 100;
    match t {
        Type::Int | Type::Uint => Declaration::Int,
        Type::Double => Declaration::Double,
        Type::String => Declaration::String { size_max },
        Type::Bool => Declaration::Bool,
        Type::List(items) => Declaration::list(declaration(items), Merge::Atomic, size_max),
        Type::Map(_, values) => Declaration::map(declaration(values), size_max),
        Type::Parameter(_) => unreachable!("variables have types"),
    }
}

impl Evaluator for Pintle {
    fn name(&self) -> &'static str {
        "pintle"
    }

    fn evaluate(&self, expression: &str) -> Outcome {
        let program = match self.environment.compile(expression) {
            Ok(program) => program,
            Err(CompileError::Constant(error)) => {
                return Outcome::Error(format!("constant: {error}"));
            }
            Err(CompileError::Issues(_)) => return Outcome::Refused,
        };
        let bindings = self.values.iter().fold(Bindings::new(), |all, value| all.with(value));
        match program.evaluate(&bindings, &mut Budget::new(COST_MAX)) {
            Ok(value) => Outcome::Value(Plain::from(&value)),
            Err(error) => Outcome::Error(error.to_string()),
        }
    }
}

/// Turns a panic of another implementation into an error, without a message on the terminal.
fn caught(evaluate: impl FnOnce() -> Outcome) -> Outcome {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|location| location.file().contains("/registry/")) {
                before(info);
            }
        }));
    });
    catch_unwind(AssertUnwindSafe(evaluate)).unwrap_or_else(|_| Outcome::Error("panic".to_owned()))
}

/// <https://github.com/cel-rust/cel-rust>
pub struct CelRust {
    environment: Arc<cel::Env>,
}

impl Default for CelRust {
    fn default() -> Self {
        let mut environment = cel::Env::stdlib();
        environment.add_extension(cel::extensions::strings).expect("added once");
        environment.add_extension(cel::extensions::lists).expect("added once");
        Self { environment: Arc::new(environment) }
    }
}

impl Evaluator for CelRust {
    fn name(&self) -> &'static str {
        "cel-rust"
    }

    fn evaluate(&self, expression: &str) -> Outcome {
        caught(|| {
            let program = match self.environment.compile(expression) {
                Ok(program) => program,
                Err(error) => return Outcome::Error(error.to_string()),
            };
            let mut context = cel::Context::with_env(Arc::clone(&self.environment));
            for (name, value) in values() {
                context.add_variable_from_value(name, to_cel_rust(&value));
            }
            match program.execute(&context) {
                Ok(value) => Outcome::Value(of_cel_rust(&value)),
                Err(error) => Outcome::Error(error.to_string()),
            }
        })
    }
}

fn to_cel_rust(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(b) => cel::Value::Bool(*b),
        Value::Int(n) => cel::Value::Int(*n),
        Value::Float(n) => cel::Value::Float(*n),
        Value::String(text) => cel::Value::String(Arc::new(text.to_string())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel_rust).collect())),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.to_string(), to_cel_rust(value)));
            cel::Value::Map(members.collect::<std::collections::HashMap<_, _>>().into())
        }
        Value::Unread(_) => unreachable!("every value here is read"),
    }
}

fn of_cel_rust(value: &cel::Value) -> Plain {
    use cel::objects::Key;
    match value {
        cel::Value::Null => Plain::Null,
        cel::Value::Bool(b) => Plain::Bool(*b),
        cel::Value::Int(n) => Plain::Int((*n).into()),
        cel::Value::UInt(n) => Plain::Int((*n).into()),
        cel::Value::Float(n) => Plain::Double(*n),
        cel::Value::String(text) => Plain::String(text.to_string()),
        cel::Value::List(items) => Plain::List(items.iter().map(of_cel_rust).collect()),
        cel::Value::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| {
                let key = match key {
                    Key::Int(n) => n.to_string(),
                    Key::Uint(n) => n.to_string(),
                    Key::Bool(b) => b.to_string(),
                    Key::String(text) => text.to_string(),
                };
                (key, of_cel_rust(value))
            });
            Plain::Map(entries.collect())
        }
        other => Plain::Other(format!("{other:?}")),
    }
}

/// <https://github.com/1BADragon/rscel>
#[derive(Default)]
pub struct Rscel;

impl Evaluator for Rscel {
    fn name(&self) -> &'static str {
        "rscel"
    }

    fn evaluate(&self, expression: &str) -> Outcome {
        caught(|| {
            let mut context = rscel::CelContext::new();
            let mut bindings = rscel::BindContext::new();
            for (name, value) in values() {
                bindings.bind_param(name, to_rscel(&value));
            }
            if let Err(error) = context.add_program_str("main", expression) {
                return Outcome::Error(error.to_string());
            }
            match context.exec("main", &bindings) {
                Ok(value) => of_rscel(&value).map_or_else(Outcome::Error, Outcome::Value),
                Err(error) => Outcome::Error(error.to_string()),
            }
        })
    }
}

fn to_rscel(value: &Value) -> rscel::CelValue {
    use rscel::CelValue;
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(b) => CelValue::Bool(*b),
        Value::Int(n) => CelValue::Int(*n),
        Value::Float(n) => CelValue::Float(*n),
        Value::String(text) => CelValue::String(text.to_string()),
        Value::Array(items) => CelValue::List(items.iter().map(to_rscel).collect()),
        Value::Object(members) => CelValue::Map(
            members.iter().map(|(key, value)| (key.to_string(), to_rscel(value))).collect(),
        ),
        Value::Unread(_) => unreachable!("every value here is read"),
    }
}

/// An error within a value is the result of the whole expression.
fn of_rscel(value: &rscel::CelValue) -> Result<Plain, String> {
    use rscel::CelValue;
    Ok(match value {
        CelValue::Null => Plain::Null,
        CelValue::Bool(b) => Plain::Bool(*b),
        CelValue::Int(n) => Plain::Int((*n).into()),
        CelValue::UInt(n) => Plain::Int((*n).into()),
        CelValue::Float(n) => Plain::Double(*n),
        CelValue::String(text) => Plain::String(text.clone()),
        CelValue::List(items) => Plain::List(items.iter().map(of_rscel).collect::<Result<_, _>>()?),
        CelValue::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| Ok((key.clone(), of_rscel(value)?)));
            Plain::Map(entries.collect::<Result<_, String>>()?)
        }
        CelValue::Err(error) => return Err(error.to_string()),
        other => Plain::Other(format!("{other:?}")),
    })
}
