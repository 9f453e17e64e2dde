//! Round trips that hold for every tree.

#![allow(clippy::unwrap_used)]

use pintle_value::{Str, Value, json, yaml};
use proptest::prelude::*;

/// Text with all characters that need special treatment in a writer.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9.:/ -]{0,12}",
        "[-+.0-9_:eExXoTZyn~ ]{0,8}",
        r#"[\\"'#&*!|>%@`{}\[\],?: \n\t<-]{0,8}"#,
        "[a-z ]{70,120}",
        "[ \n\ra\u{85}\u{2028}\u{feff}\u{0}\u{7f}é😀]{0,8}",
        any::<String>(),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    let float = any::<f64>().prop_filter("finite", |x| x.is_finite());
    // A float that is written as an integer reads as one.
    let float = float.prop_map(|x| json::parse(format!("{x:e}").as_bytes()).unwrap());
    prop_oneof![any::<i64>().prop_map(Value::Int), float]
}

fn tree() -> impl Strategy<Value = Value> {
    tree_with(number())
}

fn tree_with(number: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number,
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let member = (text().prop_map(Str::from), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            prop::collection::vec(member, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_round_trips(value in tree()) {
        let text = json::to_string(&value);
        prop_assert_eq!(&json::parse(text.as_bytes()).unwrap(), &value);
        let mut pretty = Vec::new();
        json::write_pretty(&value, &mut pretty);
        prop_assert_eq!(json::parse(&pretty).unwrap(), value);
    }

    #[test]
    fn json_is_valid_for_other_parsers(value in tree_with(any::<i64>().prop_map(Value::Int))) {
        let text = json::to_string(&value);
        let other: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(json::parse(other.to_string().as_bytes()).unwrap(), value);
    }

    #[test]
    fn yaml_round_trips(value in tree()) {
        let mut text = Vec::new();
        yaml::write(&value, &mut text);
        let shown = String::from_utf8_lossy(&text).into_owned();
        match yaml::parse(&text) {
            Ok(read) => prop_assert_eq!(read, value, "{}", shown),
            Err(error) => prop_assert!(false, "{}\n{}", error, shown),
        }
    }

    #[test]
    fn json_is_yaml(value in tree()) {
        // YAML allows the delete character only as an escape.
        let text = json::to_string(&value).replace('\u{7f}', "\\u007f");
        prop_assert_eq!(yaml::parse(text.as_bytes()).unwrap(), value);
    }

    #[test]
    fn arbitrary_text_does_not_panic(bytes in any::<Vec<u8>>(), text in "[\\[\\]{}:,\"0-9a-e&*<\\n -]{0,40}") {
        for bytes in [&bytes[..], text.as_bytes()] {
            let _ = json::parse(bytes);
            let _ = yaml::parse_documents(bytes);
        }
    }
}
