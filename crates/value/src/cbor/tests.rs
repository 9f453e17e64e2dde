use proptest::prelude::*;

use super::*;
use crate::json;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Checks the JSON that the bytes decode to, or the error.
fn check(hex: &str, expected: Result<&str, &str>) {
    let found = parse(&bytes(hex)).map(|value| json::to_string(&value));
    let found = found.map_err(|error| error.to_string());
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{hex}");
}

/// Checks the bytes that a value encodes to, without the document's prefix.
fn check_written(text: &str, hex: &str) {
    let mut out = Vec::new();
    write(&json::parse(text.as_bytes()).unwrap(), &mut out);
    assert_eq!(out, [MAGIC, &bytes(hex)].concat(), "{text}");
    assert_eq!(json::to_string(&parse(&out).unwrap()), text);
}

#[test]
fn values_are_written_deterministically() {
    check_written("null", "f6");
    check_written("true", "f5");
    check_written("0", "00");
    check_written("23", "17");
    check_written("24", "1818");
    check_written("-1", "20");
    check_written("-257", "39 0100");
    check_written("65536", "1a 00010000");
    check_written("9223372036854775807", "1b 7fffffffffffffff");
    check_written("-9223372036854775808", "3b 7fffffffffffffff");
    // The shortest form of numbers
    check_written("0.5", "f9 3800");
    check_written("1.5", "f9 3e00");
    check_written("-5.960464477539063e-8", "f9 8001");
    check_written("0.000030517578125", "f9 0200");
    check_written("0.00006103515625", "f9 0400");
    check_written("3.4028234663852886e+38", "fa 7f7fffff");
    check_written("1.1", "fb 3ff19999 9999999a");
    // Texts are byte strings; keys are ordered by length first
    check_written(r#""IETF""#, "44 49455446");
    check_written(r#"{"a":[1],"bb":{},"c":"ü"}"#, "a3 4161 81 01 4163 42 c3bc 426262 a0");
}

#[test]
fn objects_begin_with_kind_and_api_version() {
    let check = |text: &str, hex: &str, members: usize, rest: &str| {
        let mut out = bytes("00");
        let found = write_object(&json::parse(text.as_bytes()).unwrap(), &mut out);
        assert_eq!(out[1..], [MAGIC, &bytes(hex)].concat(), "{text}");
        assert_eq!((found.members, &out[found.range]), (members, &bytes(rest)[..]), "{text}");
        assert_eq!(json::to_string(&parse(&out[1..]).unwrap()), text);
    };
    check(
        r#"{"a":1,"apiVersion":"v1","kind":"K"}"#,
        "a3 446b696e64 414b 4a61706956657273696f6e 427631 4161 01",
        1,
        "4161 01",
    );
    check(r#"{"kind":"K"}"#, "a1 446b696e64 414b", 0, "");
    check(r#"{"a":1}"#, "a1 4161 01", 1, "4161 01");
    let mut list = Vec::new();
    write_list_head(&Value::from([("kind", "L")]), "items", 2, &mut list);
    list.extend(bytes("01 02"));
    assert_eq!(json::to_string(&parse(&list).unwrap()), r#"{"items":[1,2],"kind":"L"}"#);
}

#[test]
fn encodings_of_other_writers_are_read() {
    check("63 e6b0b4", Ok("\"水\""));
    check("d9d9f7 a1 61 61 01", Ok(r#"{"a":1}"#));
    check("9f 01 82 02 03 ff", Ok("[1,[2,3]]"));
    check("bf 61 61 01 ff", Ok(r#"{"a":1}"#));
    check("7f 65 73747265 61 64 6d696e67 ff", Ok(r#""streaming""#));
    check("5f 42 6162 41 63 ff", Ok(r#""abc""#));
    check("fa 3f800000", Ok("1"));
    check("f9 c400", Ok("-4"));
    // Byte strings that are to be converted to base64 or the like
    check("d6 43 000102", Ok(r#""AAEC""#));
    check("d5 43 fbff00", Ok(r#""-_8A""#));
    check("d7 42 0aff", Ok(r#""0AFF""#));
    check("c0 74 323031332d30332d32315432303a30343a30305a", Ok(r#""2013-03-21T20:04:00Z""#));
    check("d8 20 62 6161", Ok(r#""aa""#));
}

#[test]
fn items_without_json_equivalent_are_rejected() {
    let eof = Err("unexpected EOF");
    check("", Err("EOF"));
    check("18", eof);
    check("43 01", eof);
    check("9f 01", eof);
    check("a1 6161", eof);
    check("5b ffffffffffffffff", eof);
    check("9b ffffffffffffffff 01", eof);
    check("bb 7fffffffffffffff", eof);
    check("01 02", Err("cbor: 1 bytes of extraneous data starting at index 1"));
    check("1b ffffffffffffffff", Err("cbor: an integer does not fit 64 bits"));
    check("c2 41 01", Err("cbor: tag 2 is not allowed"));
    check(
        "f7",
        Err(
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized",
        ),
    );
    check(
        "f8 18",
        Err(
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value 24 is not recognized",
        ),
    );
    check(
        "f9 7c00",
        Err(
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity",
        ),
    );
    check(
        "fb 7ff8000000000000",
        Err(
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN",
        ),
    );
    check("a1 01 02", Err("cbor: the key of a map is no string"));
    check("a2 6161 01 4161 02", Err(r#"cbor: found duplicate map key "a""#));
    check("61 ff", Err("cbor: invalid UTF-8 string"));
    check("7f 41 61 ff", Err("cbor: wrong piece of a string"));
    check("1c", Err("cbor: invalid additional information 28 for type positive integer"));
    check("1f", Err("cbor: invalid additional information 31 for type positive integer"));
    check("ff", Err(r#"cbor: unexpected "break" code"#));
    check(&"81".repeat(100_000), Err("exceeded max depth"));
    check(&"c6".repeat(100_000), Err("exceeded max depth"));
    check(&"a16161".repeat(100_000), Err("exceeded max depth"));
}

#[test]
fn sequences_are_read_item_by_item() {
    let (mut out, value) = (Vec::new(), Value::from("a"));
    write(&value, &mut out);
    let length = out.len();
    write_event("ADDED", &out.clone(), &mut out);
    assert_eq!(first(&out), Ok(Some((value, length))));
    let event = first(&out[length..]).unwrap().unwrap().0;
    assert_eq!(json::to_string(&event), r#"{"object":"a","type":"ADDED"}"#);
    assert_eq!(first(&out[..length - 1]), Ok(None));
    assert!(first(&[0xf7]).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = parse(&bytes) {
            let mut out = Vec::new();
            write(&value, &mut out);
            prop_assert_eq!(parse(&out), Ok(value));
        }
    }

    #[test]
    fn floats_round_trip(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
        for x in [x, f64::from(x as f32), f64::from((x as f32).to_bits() as u16) / 1024.0] {
            let Some(value) = crate::number::from_float(x) else { continue };
            let mut out = Vec::new();
            write(&value, &mut out);
            prop_assert_eq!(parse(&out), Ok(value));
        }
    }
}
