//! Tests of distinguished names, which are written in DER here.

use super::*;

/// An attribute: its type, the tag of its value, and the value.
type Attribute<'a> = (&'a Kind, u8, &'a [u8]);

const UTF8: u8 = 0x0c;

fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).expect("it is short");
    assert!(length < 0x80, "it is short");
    [&[tag, length], value].concat()
}

/// Encodes a name with these sets of attributes.
fn name(sets: &[&[Attribute<'_>]]) -> Vec<u8> {
    let attribute =
        |(kind, tag, text): &Attribute<'_>| der(0x30, &[der(0x06, kind), der(*tag, text)].concat());
    let set =
        |set: &&[Attribute<'_>]| der(0x31, &set.iter().map(attribute).collect::<Vec<_>>().concat());
    der(0x30, &sets.iter().map(set).collect::<Vec<_>>().concat())
}

#[test]
fn string_types_are_decoded_as_in_go() {
    let rows: [(u8, &[u8], Option<&str>); 25] = [
        (UTF8, "jürgen".as_bytes(), Some("jürgen")),
        (UTF8, &[0xff], None),
        // PrintableString
        (0x13, b"a-Z 0'()+,./:=?*&", Some("a-Z 0'()+,./:=?*&")),
        (0x13, b"a_b", None),
        (0x13, b"a@b", None),
        (0x13, "ü".as_bytes(), None),
        // IA5String
        (0x16, b"a@b_c", Some("a@b_c")),
        (0x16, &[0x80], None),
        // NumericString
        (0x12, b"1 2", Some("1 2")),
        (0x12, b"a", None),
        // T61String
        (0x14, b"system:masters", Some("system:masters")),
        (0x14, &[b'j', 0xfc], Some("jü")),
        // BMPString
        (0x1e, &[0, b'o', 0, b'p', 0, b's'], Some("ops")),
        (0x1e, &[0, b'o', 0, 0], Some("o")),
        (0x1e, &[0, b'o', 0], None),
        (0x1e, &[0xd8, 0x3d, 0xde, 0x00], None),
        (0x1e, &[0xff, 0xfe], None),
        (0x1e, &[0xfd, 0xd0], None),
        (0x1e, &[], Some("")),
        // UniversalString, VisibleString, GeneralString, INTEGER, OCTET STRING, a text in parts
        (0x1c, &[0, 0, 0, b'o'], None),
        (0x1a, b"ops", None),
        (0x1b, b"ops", None),
        (0x02, &[1], None),
        (0x04, b"ops", None),
        (0x2c, b"\x0c\x03ops", None),
    ];
    for (tag, text, expected) in rows {
        let read = DistinguishedName::read(&name(&[&[(ORGANIZATION, tag, text)]]));
        let read = read.ok().map(|name| name.organizations().map(str::to_owned).collect());
        let expected: Option<Vec<String>> = expected.map(|text| vec![text.to_owned()]);
        assert_eq!(read, expected, "{tag:#x} {text:x?}");
    }
}

#[test]
fn all_attributes_of_a_name_are_read() {
    let read = DistinguishedName::read(&name(&[
        &[(COMMON_NAME, UTF8, b"first"), (ORGANIZATION, UTF8, b"a"), (ORGANIZATION, UTF8, b"b")],
        &[],
        &[(ORGANIZATION, UTF8, b"c")],
        &[(COMMON_NAME, UTF8, b"last")],
    ]));
    let read = read.expect("it can be read");
    assert_eq!(read.common_name(), "last");
    assert!(read.organizations().eq(["a", "b", "c"]));
    assert_eq!(read.last(SERIAL_NUMBER), "");
}

#[test]
fn malformed_names_are_refused() {
    let good = name(&[&[(COMMON_NAME, UTF8, b"jane")]]);
    let attribute = der(0x30, &[der(0x06, COMMON_NAME), der(UTF8, b"jane")].concat());
    for wrong in [
        Vec::new(),
        good[..good.len() - 1].to_vec(),
        [good.as_slice(), &[0]].concat(),
        [good.as_slice(), good.as_slice()].concat(),
        // An attribute without its set, a set instead of the sequence, a value without its type.
        der(0x30, &attribute),
        der(0x31, &der(0x31, &attribute)),
        der(0x30, &der(0x31, &der(0x30, &der(UTF8, b"jane")))),
        // Data behind a set, or after an attribute in it, is not ignored.
        der(0x30, &[der(0x31, &attribute), der(0x04, b"x")].concat()),
        der(0x30, &der(0x31, &[attribute.as_slice(), &[0x30]].concat())),
    ] {
        assert!(DistinguishedName::read(&wrong).is_err(), "{wrong:x?}");
    }
}
