use proptest::prelude::*;

use super::{Requirement, Selector};
use crate::tests;

#[test]
fn selectors_parse_as_upstream() {
    tests::check(include_str!("../../testdata/field_selectors.jsonl"), Selector::parse);
}

#[test]
fn selectors_match_by_value() {
    let field = |name: &str| match name {
        "metadata.name" => "a",
        "spec.nodeName" => "n=1,2",
        _ => "",
    };
    for (text, matches) in [
        ("", true),
        ("metadata.name=a", true),
        ("metadata.name==a", true),
        ("metadata.name=b", false),
        ("metadata.name!=b", true),
        ("metadata.name=a,metadata.name!=a", false),
        (r"spec.nodeName=n\=1\,2", true),
        ("status.phase=", true),
        ("status.phase!=", false),
        ("metadata.name=a,status.phase=x", false),
    ] {
        let selector = Selector::parse(text).unwrap();
        assert_eq!(selector.matches(field), matches, "{text}");
    }
    let selector = Selector::parse("a!=1,b=2").unwrap();
    assert_eq!((selector.exact_match("a"), selector.exact_match("b")), (None, Some("2")));
}

#[test]
fn length_is_bounded() {
    assert!(Selector::parse(&"a=b,".repeat(Selector::LENGTH_MAX)).is_err());
}

proptest! {
    #[test]
    fn formatted_text_parses_back(
        terms in prop::collection::vec(("[a-z.]{1,9}", any::<bool>(), "[a\\\\,=é!]{0,6}"), 0..4)
    ) {
        let mut terms: Vec<Requirement> = terms
            .into_iter()
            .map(|(field, equal, value)| Requirement {
                field: field.into(),
                equal,
                value: value.into(),
            })
            .collect();
        let text = |r: &Requirement| Selector::new(vec![r.clone()]).to_string();
        terms.sort_by_key(text);
        let selector = Selector::new(terms);
        prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[a=!,\\\\é ]{0,20}") {
        let _ = Selector::parse(&text);
    }
}
