use super::code::{without_comments_and_literals, without_tests};
use super::ids;
use super::sources::check_file;
use super::*;

#[test]
fn the_house_is_tidy() {
    let offences = check(&root()).expect("a readable repository");
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn offences_name_their_lines() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(check_file(path, text), expected, "{path}: {text}");
    };
    let file = "crates/value/src/a.rs";
    check(file, "fn f() { x.unwrap() }\n", &[":1: .unwrap()"]);
    check(file, "fn f() {\n    x.unwrap_or(1)\n}\n", &[]);
    check(file, "// x.unwrap()\nfn f() { \".unwrap()\"; }\n", &[]);
    check(
        file,
        "#[cfg(test)]\nmod tests {\n    fn f() { x.unwrap() }\n}\nfn g() { todo!() }\n",
        &[":5: todo!"],
    );
    check("crates/value/src/a/tests.rs", "fn f() { x.unwrap() }\n", &[]);
    check("crates/value/tests/a.rs", "fn f() { x.unwrap() }\n", &[]);
    check(file, "use std::time::Instant;\n", &[":1: Instant"]);
    check("crates/store/src/a.rs", "use std::time::Instant;\n", &[]);
    check(file, "fn f() { println!(\"\") }\n", &[":1: println!"]);
    check("crates/pintle/src/main.rs", "fn f() { println!(\"\") }\n", &[]);
    check(file, "// TODO: more\n", &[":1: TODO"]);
    check(file, "fn f() { TODOS }\n", &[]);
    check(file, "mod utils;\n", &[":1: mod utils"]);
    check("crates/value/src/helpers.rs", "", &[": helpers is a name that says nothing"]);
    check(
        "crates/value/src/lib.rs",
        "mod a;\n",
        &[": a crate begins with what it is and what it must not know"],
    );
    check("crates/value/src/lib.rs", "//! Values.\n", &[]);
    check(file, "const A: &str = \"../shared/x\";\n", &[":1: ../shared"]);
    check(file, &"\n".repeat(801), &[": more than 800 lines"]);
    let long =
        format!("impl A {{\n    pub(crate) async fn f(\n    ) {{\n{}    }}\n}}\n", "\n".repeat(68));
    check(file, &long, &[":2: a function of 71 lines"]);
    let declared = format!("trait A {{\n    fn f(\n    ) -> B;\n{}}}\n", "\n".repeat(80));
    check(file, &declared, &[]);
    check(file, &long.replacen('\n', "", 1), &[]);
    check("crates/value/src/generated/a.rs", &"\n".repeat(801), &[]);
}

#[test]
fn literals_and_comments_are_blanked() {
    let check = |text: &str, expected: &str| {
        let code = without_comments_and_literals(text);
        let code: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(code.join(" "), expected, "{text}");
        assert_eq!(text.lines().count(), without_comments_and_literals(text).lines().count());
    };
    check("a(\"b\\\"c\") d", "a( ) d");
    check("a(r#\"b\"c\"#) d", "a( ) d");
    check("a(br\"b\") d", "a( ) d");
    check("a('\"') d('\\'') e", "a( ) d( ) e");
    check("fn a<'b>(c: &'b str) {}", "fn a<'b>(c: &'b str) {}");
    check("a /* b /* c */ d */ e // f\ng", "a e g");
    check("for x in r { b }", "for x in r { b }");
    check("\"many\nlines\"\na", "a");
}

#[test]
fn tests_are_blanked() {
    let check = |text: &str, expected: &str| {
        let code = without_tests(text);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{text}");
        assert_eq!(text.lines().count(), code.lines().count());
    };
    check("a\n#[cfg(test)]\nmod tests;\nb\n", "a #[cfg(test)] b");
    check("a\n#[cfg(test)]\nmod tests {\n    c\n}\nb\n", "a #[cfg(test)] b");
    check(
        "impl A {\n    #[cfg(test)]\n    fn f() {\n        c\n    }\n    b\n}\n",
        "impl A { #[cfg(test)] b }",
    );
    check("#[cfg(test)]\nuse a::b;\nc\n", "#[cfg(test)] c");
}

#[test]
fn ids_without_a_row_are_reported() {
    let rows = ["SSA-01", "SSA-02"].into();
    let text = "// SSA-02, SSA-03 and (SSA-04): UTF-16, SSA-1, XSSA-05, SSA-02a, a-SSA-06";
    assert_eq!(ids::unknown(text, &rows).into_iter().collect::<Vec<_>>(), ["SSA-03", "SSA-04"]);
}
