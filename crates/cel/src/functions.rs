//! Functions: their overloads, the notation of signatures, and their implementation.
//!
//! Must not know: the set of functions, which is in the tables of [`library`](crate::library).

use std::sync::Arc;

use crate::context::Context;
use crate::error::EvalError;
use crate::types::Type;
use crate::value::{Eval, Val, made};

/// The implementation of a function; the receiver is the first argument.
pub(crate) type Native = for<'a> fn(&mut Context, &[Val<'a>]) -> Eval<'a>;

/// The declaration of a function in a library: name, guard, implementation, and its overloads by id
/// and signature. A signature that begins with a dot is that of a method.
pub(crate) type Row = (&'static str, Guard, Native, &'static [(&'static str, &'static str)]);

/// The code that checks the types of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// The function itself.
    Own,
    /// The caller: the function is only called with arguments that match an overload.
    Typed,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) guard: Guard,
    pub(crate) native: Native,
    pub(crate) overloads: Vec<Overload>,
}

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) is_member: bool,
    /// Type parameters are numbered from 0.
    args: Vec<Type>,
    result: Type,
    params: u32,
}

impl Overload {
    /// The types of arguments and result, with fresh types for the type parameters.
    pub(crate) fn instantiate(&self, mut fresh: impl FnMut() -> Type) -> (Vec<Type>, Type) {
        if self.params == 0 {
            return (self.args.clone(), self.result.clone());
        }
        let params: Vec<Type> = (0..self.params).map(|_| fresh()).collect();
        let args = self.args.iter().map(|t| put_in(t, &params)).collect();
        (args, put_in(&self.result, &params))
    }

    pub(crate) fn fits(&self, args: &[Val<'_>]) -> bool {
        self.args.len() == args.len() && args.iter().zip(&self.args).all(|(arg, t)| arg.is_a(t))
    }
}

fn put_in(t: &Type, params: &[Type]) -> Type {
    match t {
        Type::Param(number) => params[*number as usize].clone(),
        other => other.map_parameters(&mut |inner| put_in(inner, params)),
    }
}

/// The type with this name in expressions.
pub(crate) fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "optional_type" => Type::optional(Type::Dyn),
        "string" => Type::String,
        "type" => Type::Type(None),
        "uint" => Type::Uint,
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        _ => return None,
    })
}

/// The name of a type as a value.
pub(crate) fn type_value(t: &Type) -> &'static str {
    match t {
        Type::Null => "null_type",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Uint => "uint",
        Type::Double => "double",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Duration => "google.protobuf.Duration",
        Type::List(_) => "list",
        Type::Map(_) | Type::Object(_) => "map",
        Type::Struct(name) | Type::Opaque(name) => name,
        Type::Made(name) => made::kind(name),
        Type::Optional(_) => "optional_type",
        Type::Type(_) => "type",
        Type::Dyn | Type::Error | Type::Param(_) => "dyn",
    }
}

impl From<&Row> for Function {
    fn from((name, guard, native, overloads): &Row) -> Self {
        let overloads = overloads.iter().map(|(id, signature)| overload(id, signature)).collect();
        Self { name, guard: *guard, native: *native, overloads }
    }
}

/// The error that no overload of `function` matches these arguments.
pub(crate) fn no_overload_of(function: &str, args: &[Val<'_>]) -> EvalError {
    let names: Vec<&str> = args.iter().map(Val::type_name).collect();
    EvalError::new(format!("no such overload: {function}({})", names.join(", ")))
}

fn overload(id: &'static str, signature: &'static str) -> Overload {
    let (is_member, rest) = match signature.strip_prefix('.') {
        Some(rest) => (true, rest),
        None => (false, signature),
    };
    let mut reader = Reader { rest, params: Vec::new() };
    let mut args = Vec::new();
    while !reader.take("->") {
        args.push(reader.read());
        reader.take(",");
    }
    let result = reader.read();
    Overload { id, is_member, args, result, params: reader.params.len() as u32 }
}

/// Parses signatures. They are constants of this crate, so an invalid type is a bug and panics.
struct Reader {
    rest: &'static str,
    params: Vec<&'static str>,
}

impl Reader {
    fn take(&mut self, sign: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn read(&mut self) -> Type {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| " ,()".contains(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let mut inner = Vec::new();
        if self.take("(") {
            while !self.take(")") {
                inner.push(self.read());
                self.take(",");
            }
        }
        match (name, &mut inner[..]) {
            ("dyn", []) => Type::Dyn,
            ("timestamp", []) => Type::Timestamp,
            ("duration", []) => Type::Duration,
            ("list", [items]) => Type::list(items.clone()),
            ("map", [keys, values]) => Type::map(keys.clone(), values.clone()),
            ("optional_type", [inner]) => Type::optional(inner.clone()),
            ("type", [inner]) => Type::Type(Some(Arc::new(inner.clone()))),
            (name, []) if name.len() == 1 => self.param(name),
            (name, []) if name.starts_with("kubernetes.") => Type::Struct(name),
            (name, []) if name.starts_with("net.") => Type::Opaque(name),
            (name, _) => named_type(name).expect("signatures name types that there are"),
        }
    }

    fn param(&mut self, name: &'static str) -> Type {
        let known = self.params.iter().position(|p| *p == name);
        let number = known.unwrap_or_else(|| {
            self.params.push(name);
            self.params.len() - 1
        });
        Type::Param(number as u32)
    }
}
