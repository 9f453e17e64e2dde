//! Runs `session.yaml` with the machine's kubectl against Pintle, or against the server of the
//! kubeconfig that `PINTLE_TEST_KUBECONFIG` names.
//!
//! Rows follow one another, so one failure can cause others; all are reported. Without a kubectl
//! the test says so and does nothing, but fails if `CI` is set.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use regex::Regex;
use serde::Deserialize;

/// How long a command in the background may take to print its output.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The abilities of the server.
const ABILITIES: [&str; 1] = ["protobuf"];
/// The oldest kubectl whose output the session expects.
const OLDEST_MINOR: u32 = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    section: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The shell command.
    run: Option<String>,
    /// Starts the command in the background under this name.
    start: Option<String>,
    /// Stops the background command of this name.
    stop: Option<String>,
    /// Abilities that the server must have.
    #[serde(default)]
    requires: Vec<String>,
    #[serde(default)]
    exit: i32,
    /// The whole output.
    #[serde(default)]
    out: String,
    /// Lines of the output.
    has: Option<Vec<String>>,
    /// The whole standard error.
    #[serde(default)]
    err: String,
}

#[test]
fn session() -> Result<()> {
    let Some(kubectl) = kubectl() else {
        let missing = format!("there is no kubectl of 1.{OLDEST_MINOR} or later on the path");
        ensure!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("{missing}: nothing was tested");
        return Ok(());
    };
    let server = Server::start()?;
    let home = tempfile::tempdir()?;
    let shell = Shell { kubectl, kubeconfig: server.kubeconfig.clone(), home: home.path().into() };
    let text = std::fs::read_to_string(here().join("session.yaml"))?;
    let options = serde_saphyr::options! { strict_booleans: true };
    let sections: Vec<Section> = serde_saphyr::from_str_with_options(&text, options)?;
    let mut running = BTreeMap::new();
    let mut failures = Vec::new();
    for section in &sections {
        println!("{}", section.section);
        for row in &section.rows {
            let name =
                row.run.as_ref().or(row.stop.as_ref()).context("a row without run or stop")?;
            if !row.requires.iter().all(|ability| ABILITIES.contains(&ability.as_str())) {
                println!("  skip {name}");
                continue;
            }
            let result = shell.row(row, &mut running);
            println!("  {} {name}", if result.is_ok() { "ok  " } else { "FAIL" });
            failures.extend(result.err().map(|error| format!("$ {name}\n{error:#}")));
        }
    }
    ensure!(failures.is_empty(), "{} rows failed\n\n{}", failures.len(), failures.join("\n\n"));
    Ok(())
}

/// The server; dropping the value stops it.
struct Server {
    kubeconfig: PathBuf,
    _inner: Option<pintle_testing::TestServer>,
}

impl Server {
    fn start() -> Result<Self> {
        if let Some(path) = std::env::var_os("PINTLE_TEST_KUBECONFIG") {
            return Ok(Self { kubeconfig: path.into(), _inner: None });
        }
        let server = pintle_testing::TestServer::start();
        Ok(Self { kubeconfig: server.kubeconfig_path().to_owned(), _inner: Some(server) })
    }
}

/// A running command.
struct Running {
    child: Child,
    out: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs commands in the folder of the session's files, with its own home.
struct Shell {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Shell {
    fn row(&self, row: &Row, running: &mut BTreeMap<String, Running>) -> Result<()> {
        if let Some(name) = &row.stop {
            let process = running.remove(name).with_context(|| format!("{name} isn't running"))?;
            return await_output(&process.out, &row.out);
        }
        let line = row.run.as_deref().context("nothing to run")?;
        if let Some(name) = &row.start {
            let out = self.home.join(name);
            let child =
                self.command(&format!("exec {line}")).stdout(File::create(&out)?).spawn()?;
            let process = running.entry(name.clone()).or_insert(Running { child, out });
            return await_output(&process.out, &row.out);
        }
        let output = self.command(line).stdin(Stdio::null()).output()?;
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        let mut wrong = Vec::new();
        if output.status.code() != Some(row.exit) {
            wrong.push(format!("expected exit code {}, got {}", row.exit, output.status));
        }
        match &row.has {
            Some(lines) => wrong.extend(
                lines
                    .iter()
                    .filter(|line| !has_line(&out, line))
                    .map(|line| format!("expected the line\n{line}\nin standard output")),
            ),
            None if !matches(&row.out, &out) => {
                wrong.push(format!("expected standard output\n{}", row.out.trim_end()));
            }
            None => {}
        }
        if !matches(&row.err, &err) {
            wrong.push(format!("expected standard error\n{}", row.err.trim_end()));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let all = format!("got\n{}\nand on standard error\n{}", out.trim_end(), err.trim_end());
        bail!("{}\n{all}", wrong.join("\n"))
    }

    fn command(&self, line: &str) -> Command {
        let mut path = self.kubectl.parent().map(Path::as_os_str).unwrap_or_default().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(here())
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("TMPDIR", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .env_remove("KUBE_EDITOR");
        command
    }
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Waits until a file has the expected contents.
fn await_output(file: &Path, expected: &str) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let text = std::fs::read_to_string(file)?;
        if matches(expected, &text) {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("expected\n{}\ngot\n{}", expected.trim_end(), text.trim_end());
        }
        std::thread::sleep(Duration::from_millis(20)); // a file can't be waited for
    }
}

/// Whether a text matches, with its placeholders. Gaps have any width, and spaces at the ends of
/// lines do not count.
fn matches(expected: &str, text: &str) -> bool {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    pattern(expected.trim_end()).is_match(&lines.join("\n"))
}

fn has_line(text: &str, expected: &str) -> bool {
    let pattern = pattern(expected);
    text.lines().any(|line| pattern.is_match(line.trim_end()))
}

fn pattern(expected: &str) -> Regex {
    const PLACEHOLDERS: [(&str, &str); 7] = [
        ("<age>", r"([0-9]+[smhd])+"),
        ("<any>", r"[^\n]*"),
        ("<lines>", r"(?s:.*)"),
        ("<number>", r"[0-9]+"),
        ("<server>", r"https://\S+"),
        ("<time>", r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"),
        ("<uid>", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ];
    let gaps = Regex::new("([^ \n]) {2,}").expect("a constant");
    let mut text = regex::escape(expected);
    for (placeholder, meaning) in PLACEHOLDERS {
        text = text.replace(&regex::escape(placeholder), meaning);
    }
    let text = gaps.replace_all(&text, "$1 {2,}");
    Regex::new(&format!("^(?:{text})$")).expect("an escaped text is a pattern")
}

/// The kubectl on the path, if it is new enough.
fn kubectl() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join("kubectl"))
        .find(|path| minor_version(path).is_some_and(|minor| minor >= OLDEST_MINOR))
}

fn minor_version(kubectl: &Path) -> Option<u32> {
    let output = Command::new(kubectl).args(["version", "--client", "-o", "json"]).output().ok()?;
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let minor = version["clientVersion"]["minor"].as_str()?;
    minor.trim_end_matches('+').parse().ok()
}

#[test]
fn expectations_match_patterns() {
    for (expected, text, fits) in [
        ("", "", true),
        ("", "x", false),
        ("a  b", "a      b", true),
        ("a  b", "a b", false),
        ("NAME   AGE\nx      <age>\n", "NAME   AGE\nx      3m12s  \n", true),
        ("<lines>", "a\nb", true),
        ("deleted<any>", "deleted from t", true),
        ("deleted<any>", "deleted\nmore", false),
        ("a (b)", "a (b)", true),
        ("  indented", "   indented", false),
    ] {
        assert_eq!(matches(expected, text), fits, "{expected:?} ~ {text:?}");
    }
}
