//! Invariants of decoding arbitrary bytes as an object. A panic is a finding.

// A fuzz target calls one of these functions; the replay of the corpus calls all.
#![allow(dead_code)]

use pintle_schema::{
    Format, PROBLEMS_MAX, builtin, builtin_kind, conform, decode as decode_object, default, encode,
    protobuf as message, validate,
};
use pintle_value::json;

/// Decodes a body: the first two bytes choose the type, the third the format, and the rest is the
/// body.
pub(crate) fn decode(bytes: &[u8]) {
    let [low, high, format, body @ ..] = bytes else { return };
    let schema = builtin();
    let which = usize::from(u16::from_le_bytes([*low, *high]));
    let (name, ty) = &schema.names()[which % schema.names().len()];
    let format = if *format == b'y' { Format::Yaml } else { Format::Json };
    let Ok(mut decoded) = decode_object(schema, *ty, body, format) else { return };
    assert!(decoded.problems.len() <= PROBLEMS_MAX);

    let normal = decoded.value.clone();
    assert_eq!(conform(schema, *ty, &mut decoded.value), Ok(Vec::new()), "{name}");
    assert_eq!(decoded.value, normal, "{name}: a decoded object conforms");
    let mut out = Vec::new();
    encode::write(schema, *ty, &normal, &mut out);
    let all = json::parse(json::to_string(&normal).as_bytes());
    assert_eq!(json::parse(&out), all, "{name}: encoding loses nothing");
    default::apply(schema, *ty, &mut decoded.value);
    validate::validate(schema, *ty, &decoded.value, None);
    validate::validate(schema, *ty, &decoded.value, Some(&normal));
}

/// Decodes a Protobuf message of the kind that it names. A decoded object is normalized, and
/// encoding and decoding it again returns the same object.
pub(crate) fn protobuf(bytes: &[u8]) {
    let Ok((api_version, kind)) = message::type_meta(bytes) else { return };
    let Some(ty) = builtin_kind(&api_version, &kind) else { return };
    let schema = builtin();
    let Ok(mut value) = message::decode(schema, ty, bytes) else { return };
    let normal = value.clone();
    assert_eq!(conform(schema, ty, &mut value), Ok(Vec::new()), "{kind}");
    assert_eq!(value, normal, "{kind}: a decoded object conforms");
    let mut out = Vec::new();
    let within = message::encode(schema, ty, &normal, &mut out);
    assert!(within.end <= out.len() && message::is_message(&out));
    assert_eq!(message::decode(schema, ty, &out), Ok(normal), "{kind}: encoding loses nothing");
}
