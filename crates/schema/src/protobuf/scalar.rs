//! Decodes scalars. Many that are text or a number in JSON are messages in Protobuf.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_meta::{duration, quantity, time};
use pintle_value::{Value, json, number, token::Tokens};

use super::{
    message::Messages,
    wire::{Fields, Wire},
};
use crate::{Error, Scalar, TypeId, props_or, zero::ZERO_TIME};

/// The range of seconds since 1970 for which RFC 3339 has years.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

impl<'b> Messages<'_, 'b> {
    /// Decodes a scalar to its normalized value.
    pub(super) fn scalar(
        &mut self,
        kind: Scalar,
        ty: TypeId,
        wire: Wire<'b>,
        name: &str,
    ) -> Result<Value, Error> {
        match kind {
            Scalar::String => Ok(Value::from(&*json::text(wire.bytes(name)?))),
            Scalar::Bool => Ok(Value::Bool(wire.varint(name)? != 0)),
            // Go truncates larger values.
            Scalar::Int32 => Ok(Value::Int(i64::from(wire.varint(name)? as i32))),
            Scalar::Int64 => Ok(Value::Int(wire.varint(name)?.cast_signed())),
            Scalar::Float64 => match wire {
                Wire::Fixed64(bits) => number(f64::from_bits(bits)),
                other => Err(other.unexpected(name)),
            },
            Scalar::Bytes => Ok(Value::from(STANDARD.encode(wire.bytes(name)?))),
            Scalar::Quantity => {
                let text =
                    first(wire.bytes(name)?)?.map(|wire| wire.bytes("string")).transpose()?;
                let text = text.map_or(Cow::Borrowed("0"), json::text);
                match quantity::canonical(text.trim()) {
                    Ok(text) => Ok(Value::from(&*text)),
                    Err(error) => Err(Error::Scalar(error)),
                }
            }
            Scalar::Time => match timestamp(wire.bytes(name)?)? {
                Some((seconds, _)) if seconds * time::SECOND != ZERO_TIME => {
                    Ok(Value::from(time::format(seconds * time::SECOND)))
                }
                _ => Ok(Value::Null),
            },
            Scalar::MicroTime => match timestamp(wire.bytes(name)?)? {
                Some((seconds, nanos)) => {
                    let micros = seconds * time::SECOND + i64::from(nanos / 1000);
                    let is_zero = micros == ZERO_TIME;
                    Ok(if is_zero { Value::Null } else { Value::from(time::format_micro(micros)) })
                }
                None => Ok(Value::Null),
            },
            Scalar::Duration => {
                let nanos = first(wire.bytes(name)?)?.map(|wire| wire.varint("duration"));
                let nanos = nanos.transpose()?.unwrap_or(0).cast_signed();
                Ok(Value::from(duration::format(nanos)))
            }
            Scalar::IntOrString => int_or_string(wire.bytes(name)?),
            Scalar::Any if props_or::of(self.schema(), ty).is_some() => {
                self.props_or(ty, wire.bytes(name)?)
            }
            Scalar::RawExtension | Scalar::Any => self.raw(wire.bytes(name)?, |text| text.tree()),
            Scalar::Fields => self.raw(wire.bytes(name)?, |text| text.json().map(Value::raw)),
        }
    }

    /// Parses the JSON in a message.
    fn raw(
        &self,
        message: &[u8],
        read: impl FnOnce(&mut json::Reader<'_>) -> Result<Value, pintle_value::Error>,
    ) -> Result<Value, Error> {
        let text = first(message)?.map(|wire| wire.bytes("raw")).transpose()?.unwrap_or_default();
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let text = json::text(text);
        let mut reader = json::Reader::within(&text, self.depth());
        let value = read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

/// The value of field 1 of a message with a single field.
fn first(message: &[u8]) -> Result<Option<Wire<'_>>, Error> {
    let mut last = None;
    for field in Fields::new(message) {
        if let (1, wire) = field? {
            last = Some(wire);
        }
    }
    Ok(last)
}

fn number(number: f64) -> Result<Value, Error> {
    if !number.is_finite() {
        return Err(Error::Protobuf(format!("json: unsupported value: {number}").into()));
    }
    let mut text = Vec::new();
    json::write(&Value::Float(number), &mut text);
    Ok(number::parse(&json::text(&text))?)
}

/// Decodes seconds since 1970, and nanoseconds; `None` for Go's zero time, an empty message.
fn timestamp(message: &[u8]) -> Result<Option<(i64, i32)>, Error> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields::new(message) {
        match field? {
            (1, wire) => seconds = wire.varint("seconds")?.cast_signed(),
            (2, wire) => nanos = wire.varint("nanos")? as i32,
            _ => {}
        }
    }
    if !SECONDS.contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        let why = "Time.MarshalJSON: year outside of range [0,9999]";
        return Err(Error::Protobuf(why.into()));
    }
    Ok(Some((seconds, nanos)).filter(|_| !message.is_empty()))
}

fn int_or_string(message: &[u8]) -> Result<Value, Error> {
    let (mut is_text, mut int, mut text) = (false, 0, Cow::Borrowed(""));
    for field in Fields::new(message) {
        match field? {
            (1, wire) => is_text = wire.varint("type")? == 1,
            (2, wire) => int = wire.varint("intVal")? as i32,
            (3, wire) => text = json::text(wire.bytes("strVal")?),
            _ => {}
        }
    }
    Ok(if is_text { Value::from(&*text) } else { Value::Int(i64::from(int)) })
}
