//! Decodes scalars: checks each value and converts it to the canonical text of its type.

use std::borrow::Cow;

use pintle_meta::{duration, quantity, time};
use pintle_value::{
    Value, number,
    token::{Kind, Token, Tokens},
};

use super::{Decoder, FieldPath, Result, base64};
use crate::{Error, Scalar, TypeId, props_or, zero::ZERO_TIME};

impl<T: Tokens> Decoder<'_, T> {
    /// Decodes the next value as a scalar.
    pub(super) fn scalar(&mut self, kind: Scalar, ty: TypeId, at: &FieldPath<'_>) -> Result<Value> {
        match kind {
            Scalar::Any => match props_or::of(self.schema, ty) {
                Some(of) => return self.props_or(of, at),
                None => return self.untyped(at),
            },
            // Upstream keeps these as bytes and does not look for duplicate fields in them.
            Scalar::RawExtension => return self.tokens.tree(),
            Scalar::Fields => return self.tokens.json().map(Value::raw),
            _ => {}
        }
        let token = self.tokens.value()?;
        let read = match (kind, token) {
            (_, Token::Null) => return Ok(Value::Null),
            (Scalar::String, Token::String(text)) => return Ok(Value::from(text)),
            (Scalar::Bool, Token::Bool(b)) => return Ok(Value::Bool(b)),
            (Scalar::Float64, Token::Number(text)) => {
                number::parse(text).map_err(|_| Fault::number(text))
            }
            (Scalar::Int32 | Scalar::IntOrString, Token::Number(text)) => match text.parse() {
                Ok(n) => Ok(Value::Int(i32::into(n))),
                Err(_) => Err(Fault::number(text)),
            },
            (Scalar::Int64, Token::Number(text)) => match text.parse() {
                Ok(n) => Ok(Value::Int(n)),
                Err(_) => Err(Fault::number(text)),
            },
            (Scalar::IntOrString, Token::String(text)) => Ok(Value::from(text)),
            (Scalar::Bytes, Token::String(text)) => {
                base64::canonical(text).map(as_value).map_err(Fault::Error)
            }
            (Scalar::Quantity, Token::String(text) | Token::Number(text)) => {
                quantity::canonical(text.trim()).map(as_value).map_err(Fault::scalar)
            }
            (Scalar::Time, Token::String(text)) => canonical_time(text).map_err(Fault::scalar),
            (Scalar::MicroTime, Token::String(text)) => {
                canonical_micro_time(text).map_err(Fault::scalar)
            }
            (Scalar::Duration, Token::String(text)) => match duration::parse(text) {
                Ok(nanos) => Ok(Value::from(duration::format(nanos))),
                Err(error) => Err(Fault::scalar(error)),
            },
            (_, token) => Err(Fault::Kind(token.kind())),
        };
        match read {
            Ok(value) => Ok(value),
            Err(fault) => self.record_scalar_error(fault, kind, ty, at),
        }
    }

    #[cold]
    fn record_scalar_error(
        &mut self,
        fault: Fault,
        kind: Scalar,
        ty: TypeId,
        at: &FieldPath<'_>,
    ) -> Result<Value> {
        let error = match fault {
            Fault::Error(error) => error,
            Fault::Kind(found) => {
                self.tokens.skip_rest(found)?;
                match kind {
                    // Upstream parses the text of any value as a quantity.
                    Scalar::Quantity => Error::Scalar(pintle_meta::Error::QuantityFormat),
                    _ => self.type_error(found.name().to_owned(), ty, at),
                }
            }
            Fault::Number(text) => self.type_error(format!("number {text}"), ty, at),
        };
        let decodes_itself = matches!(
            kind,
            Scalar::Quantity
                | Scalar::Time
                | Scalar::MicroTime
                | Scalar::Duration
                | Scalar::IntOrString
        );
        let first = if decodes_itself { &mut self.errors.scalar } else { &mut self.errors.other };
        first.get_or_insert(error);
        Ok(Value::Null)
    }
}

/// Why a scalar is invalid; the path is added later.
enum Fault {
    /// The value has another type.
    Kind(Kind),
    /// The type cannot hold the number.
    Number(String),
    /// The text is invalid for the type.
    Error(Error),
}

impl Fault {
    const fn scalar(error: pintle_meta::Error) -> Self {
        Self::Error(Error::Scalar(error))
    }

    fn number(text: &str) -> Self {
        Self::Number(text.to_owned())
    }
}

fn as_value(text: Cow<'_, str>) -> Value {
    Value::String(text.into())
}

fn canonical_time(text: &str) -> Result<Value, pintle_meta::Error> {
    let micros = time::parse(text)?;
    Ok(if micros == ZERO_TIME {
        Value::Null
    } else if text.len() == "2006-01-02T15:04:05Z".len() && text.ends_with('Z') {
        Value::from(text) // the parser accepts no other text of this length
    } else {
        Value::from(time::format(micros))
    })
}

fn canonical_micro_time(text: &str) -> Result<Value, pintle_meta::Error> {
    let micros = time::parse_micro(text)?;
    Ok(if micros == ZERO_TIME { Value::Null } else { Value::from(time::format_micro(micros)) })
}
