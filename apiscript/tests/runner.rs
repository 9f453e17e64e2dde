//! The runner itself, against a server with fixed responses: it finds differences, and reports
//! where they are.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use anyhow::Result;
use apiscript::kubeconfig::Cluster;
use apiscript::{Outcome, Target, run_scripts, script};

/// Paths, with the head and body of the response.
const ANSWERS: [(&str, &str, &str); 9] = [
    (
        "/one",
        "200 OK\r\nContent-Type: application/json\r\nX-A: b",
        r#"{"name":"one","n":[1,2],"deep":{"a":"b"}}"#,
    ),
    (
        "/missing",
        "404 Not Found\r\nContent-Type: application/json",
        r#"{"kind":"Status","code":404}"#,
    ),
    ("/text", "200 OK\r\nContent-Type: text/plain", "ok"),
    ("/yaml", "200 OK\r\nContent-Type: application/yaml", "a: [1, {b: c}]\n"),
    ("/broken", "200 OK\r\nContent-Type: application/json", "{"),
    ("/made", "201 Created\r\nContent-Type: application/json", r#"{"metadata":{"name":"x"}}"#),
    (
        "/chunks",
        "200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked",
        "6\r\n{\"a\":1\r\n1\r\n}\r\n0\r\n\r\n",
    ),
    ("/watch", "200 OK\r\nTransfer-Encoding: chunked", WATCH),
    ("/cut", "200 OK\r\nTransfer-Encoding: chunked", "5\r\n{\"typ"),
];

const WATCH: &str = "24\r\n{\"type\":\"ADDED\",\"object\":{\"n\":\"a\"}}\n\r\n\
                     27\r\n{\"type\":\"BOOKMARK\",\"object\":{\"n\":\"b\"}}\n\r\n0\r\n\r\n";

#[test]
fn scripts_pass_or_report_the_difference() -> Result<()> {
    let server = serve()?;
    for (steps, wrong) in [
        ("{GET: /one, body: {name: one}}", None),
        ("{GET: /one, exact: {name: one}}", Some("deep: expected nothing, got {\"a\":\"b\"}")),
        ("{GET: /one, body: {deep: {a: c}}}", Some("deep.a: expected \"c\", got \"b\"")),
        ("{GET: /one, status: 404}", Some("status: expected 404, got 200")),
        ("{GET: /one, status: [404, 200]}", None),
        ("{GET: /one, response-headers: {X-A: b, X-B: <absent>}}", None),
        ("{GET: /one, response-headers: {X-A: c}}", Some("header X-A")),
        ("{GET: /missing}", Some("curl -isk $AUTH -X GET")),
        ("{GET: /missing, status: 404, body: {kind: Status}}", None),
        ("{GET: /text, text: ok}", None),
        ("{GET: /text, text: no}", Some("text: expected \"no\", got \"ok\"")),
        ("{GET: /text, body: {}}", Some("expected JSON or YAML")),
        ("{GET: /yaml, body: {a: [1, {b: c}]}}", None),
        ("{GET: /broken}", Some("the body is not JSON")),
        ("{GET: /chunks, exact: {a: 1}}", None),
        ("{POST: /made, send: {}}", None),
        ("{POST: /one, send: {}}", Some("status: expected 201, got 200")),
        (
            "{GET: /one, save: {x: deep.a}}, {GET: /one, body: {deep: {a: $x}, name: <not $x>}}",
            None,
        ),
        ("{GET: /one, save: {x: deep.z}}", Some("nothing at deep.z")),
        ("{GET: /$nobody}", Some("there is no variable $nobody")),
        ("{GET: /one, body: {n: {length: $n}}, rows: [{n: 2}, {n: 3}]}", Some("with {\"n\":3}")),
        ("{GET: $path, times: 2, rows: [{path: /one}, {path: /text}]}", None),
        ("{GET: /one, status: 201, within: 120ms}", Some("status: expected 201, got 200")),
        ("{GET: /one, race: 3, status: {\"200\": 3}}", None),
        ("{GET: /one, race: 3, status: {\"200\": 2}}", Some("200: expected 2, got 3")),
        (
            "{GET: /watch, watch: w}, {events: w, next: [{ADDED: {n: a}}, {BOOKMARK: {}}]}, {end: w}",
            None,
        ),
        (
            "{GET: /watch, watch: w}, {events: w, next: [{ADDED: {n: a}}]}, {end: w, ignore: [BOOKMARK]}",
            None,
        ),
        (
            "{GET: /watch, watch: w}, {events: w, next: [{ADDED: {n: b}}]}",
            Some("object.n: expected \"b\", got \"a\""),
        ),
        ("{GET: /watch, watch: w}, {end: w}", Some("expected the watch to end")),
        (
            "{GET: /watch, watch: w}, {events: w, next: [{BOOKMARK: {}}, {ADDED: {}}], unordered: true}",
            None,
        ),
        (
            "{GET: /watch, watch: w}, {events: w, next: [{ADDED: {}}, {BOOKMARK: {}}, {ADDED: {}}]}",
            Some("the watch ended"),
        ),
        ("{GET: /cut, watch: w}, {end: w}", Some("the watch broke")),
        ("{GET: /cut}", Some("ended inside a chunk")),
        ("{GET: /one, requires: [wings], status: 500}", None),
    ] {
        let outcome = run(&server, steps)?;
        match (&outcome, wrong) {
            (Outcome::Passed, None) => {}
            (Outcome::Failed(found), Some(wrong)) if found.contains(wrong) => {}
            _ => panic!("{steps}\nexpected {wrong:?}, got {outcome:?}"),
        }
    }
    Ok(())
}

#[test]
fn invalid_scripts_are_refused() {
    for steps in [
        "{}",
        "{GET: /a, POST: /b}",
        "{PATCH: /a, send: {}}",
        "{POST: /a, send: {}, raw: x}",
        "{GTE: /a}",
        "{events: w, next: [{ADDED: {}, DELETED: {}}]}",
        "{POST: /a, watch: w}",
        "{steps: [{}]}",
    ] {
        let text = format!("- {{script: s, steps: [{steps}]}}");
        assert!(script::parse(&text, Path::new("x.yaml")).is_err(), "{steps}");
    }
}

fn run(server: &str, steps: &str) -> Result<Outcome> {
    let text = format!("- {{script: s, steps: [{steps}]}}");
    let scripts = script::parse(&text, Path::new("x.yaml"))?;
    let report = run_scripts(&scripts, &Target::new(Cluster::plain(server))?, 1, |_| ());
    Ok(report.cases[0].outcome.clone())
}

/// Starts a server that responds from the table; returns its URL.
fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || converse(socket));
        }
    });
    Ok(url)
}

/// Serves requests until the client closes the connection.
fn converse(socket: TcpStream) -> Result<()> {
    let mut reader = BufReader::new(socket);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        let path = first.split(' ').nth(1).unwrap_or_default();
        let answer = ANSWERS.iter().find(|(about, ..)| *about == path);
        let (_, head, body) = answer.copied().unwrap_or(("", "500 Oh\r\nX: y", ""));
        let sized = if head.contains("chunked") {
            String::new()
        } else {
            format!("\r\nContent-Length: {}", body.len())
        };
        write!(reader.get_mut(), "HTTP/1.1 {head}{sized}\r\n\r\n{body}")?;
        if path == "/cut" {
            return Ok(());
        }
    }
}
