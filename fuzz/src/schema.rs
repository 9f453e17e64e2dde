//! What holds for any bytes that are read as an object. A panic is a finding.

use pintle_schema::{
    Format, PROBLEMS_MAX, builtin, conform, decode as decode_object, default, encode, validate,
};
use pintle_value::json;

/// The first two bytes choose the type, the third the format; the rest is the body.
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
    assert_eq!(decoded.value, normal, "{name}: decoding gives what conforming leaves as it is");
    let mut out = Vec::new();
    encode::write(schema, *ty, &normal, &mut out);
    assert_eq!(json::parse(&out).as_ref(), Ok(&normal), "{name}: encoding loses nothing");
    default::apply(schema, *ty, &mut decoded.value);
    validate::validate(schema, *ty, &decoded.value, None);
    validate::validate(schema, *ty, &decoded.value, Some(&normal));
}
