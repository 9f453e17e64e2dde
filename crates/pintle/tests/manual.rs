//! Manual pages and shell completions, as the programs that use them read them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const COMMANDS: [&str; 9] = [
    "serve",
    "certificates",
    "convert",
    "snapshot",
    "kubeconfig",
    "envtest-assets",
    "doctor",
    "completion",
    "man",
];

fn pintle(arguments: &[&str]) -> Vec<u8> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_pintle")).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output.stdout
}

/// Runs a program with an input; returns its standard output and error, or `None`, with a note, if
/// the program is not installed.
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Option<(String, String)> {
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
        return None;
    };
    child.stdin.take().expect("piped").write_all(input).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, errors) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{program}: {errors}");
    Some((out, errors))
}

/// Completes the last of some words in bash, with the printed script.
fn complete(words: &[&str]) -> Option<Vec<String>> {
    let script = String::from_utf8(pintle(&["completion", "bash"])).expect("UTF-8");
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let last = words.len() - 1;
    let previous = words[last - 1];
    let question = format!(
        "{script}\ncomplete -p pintle >/dev/null || exit 1\n\
         COMP_WORDS=({}); COMP_CWORD={last}\n\
         _pintle pintle '{}' '{previous}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" "),
        words[last],
    );
    let (out, errors) = run("bash", &["--norc", "-s"], question.as_bytes())?;
    assert_eq!(errors, "");
    Some(out.lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_commands_flags_and_values() {
    for (words, expected) in [
        (&["pintle", "ser"][..], &["serve"][..]),
        (&["pintle", "serve", "--data-d"], &["--data-dir"]),
        (&["pintle", "serve", "--conf"], &["--config"]),
        (&["pintle", "doctor", "--conf"], &["--config"]),
        (&["pintle", "convert", "--output", ""], &["json", "yaml", "protobuf"]),
        (&["pintle", "completion", ""], &["bash", "zsh", "fish"]),
        (&["pintle", "doctor", "--output", "j"], &["json"]),
    ] {
        let Some(found) = complete(words) else { return };
        for word in expected {
            assert!(found.iter().any(|found| found == word), "{words:?}: {found:?}");
        }
    }
    if let Some(found) = complete(&["pintle", ""]) {
        for command in COMMANDS {
            assert!(found.iter().any(|found| found == command), "{command}: {found:?}");
        }
    }
}

#[test]
fn fish_completes_commands_flags_and_values() {
    let script = String::from_utf8(pintle(&["completion", "fish"])).expect("UTF-8");
    for (line, expected) in [
        ("pintle ser", "serve"),
        ("pintle kubec", "kubeconfig"),
        ("pintle serve --data-d", "--data-dir"),
        ("pintle doctor --conf", "--config"),
        ("pintle doctor --output j", "json"),
    ] {
        let question = format!("{script}\ncomplete --do-complete '{line}'\n");
        let Some((found, _)) = run("fish", &["--no-config"], question.as_bytes()) else { return };
        // A candidate is a word, and behind a tab its description.
        let mut words = found.lines().map(|line| line.split('\t').next().unwrap_or(line));
        assert!(words.any(|word| word == expected), "{line}: {found}");
    }
}

#[test]
fn zsh_finds_the_script_for_the_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = pintle(&["completion", "zsh"]);
    std::fs::write(directory.path().join("_pintle"), script).expect("written");
    let question = format!(
        "fpath=({} $fpath); autoload -Uz compinit; compinit -u -D\n\
         print $_comps[pintle]; autoload +X $_comps[pintle]\n",
        directory.path().display(),
    );
    if let Some((found, errors)) = run("zsh", &["--no-rcs"], question.as_bytes()) {
        assert_eq!((found.trim(), &*errors), ("_pintle", ""));
    }
}

#[test]
fn zsh_and_fish_parse_their_scripts() {
    let directory = tempfile::tempdir().expect("a directory");
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let script = pintle(&["completion", shell]);
        let path = directory.path().join(shell);
        std::fs::write(&path, &script).expect("written");
        for command in COMMANDS {
            let text = String::from_utf8_lossy(&script);
            assert!(text.contains(command), "{shell}: {command}");
        }
        let path = path.to_str().expect("UTF-8");
        if let Some((_, errors)) = run(shell, &[check, path], b"") {
            assert_eq!(errors, "", "{shell}");
        }
    }
}

#[test]
fn manual_pages_are_written_for_all_commands_and_render() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("man1");
    pintle(&["man", "--directory", pages.to_str().expect("UTF-8")]);
    let names = COMMANDS.map(|name| format!("pintle-{name}"));
    for name in names.iter().map(String::as_str).chain(["pintle"]) {
        let path = pages.join(format!("{name}.1"));
        let page = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_page(name, &path, &page);
    }
    for name in COMMANDS {
        let help = String::from_utf8(pintle(&[name, "--help"])).expect("UTF-8");
        let page = std::fs::read_to_string(pages.join(format!("pintle-{name}.1"))).expect("read");
        let page = page.replace("\\-", "-");
        let options = help.lines().filter(|line| line.starts_with("  "));
        for flag in options.filter_map(|line| line.trim().split(' ').find(|w| w.starts_with("--")))
        {
            let flag = flag.split(['=', '[']).next().unwrap_or(flag);
            assert!(page.contains(flag), "{name}: {flag}");
        }
    }
    let printed = pintle(&["man", "serve"]);
    assert_eq!(printed, std::fs::read(pages.join("pintle-serve.1")).expect("written"));
}

fn check_page(name: &str, path: &Path, page: &[u8]) {
    let groff = ["-k", "-ww", "-man", "-Tutf8", "-P-bcou"];
    if let Some((text, warnings)) = run("groff", &groff, page) {
        assert_eq!(warnings, "", "{name}");
        assert!(text.contains("DESCRIPTION"), "{name}: {text}");
        if name == "pintle-serve" {
            for part in ["CONFIGURATION FILE", "--config", "data-dir: /var/lib/pintle", "DURATION"]
            {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
    let path = path.to_str().expect("UTF-8");
    if let Some((warnings, _)) = run("mandoc", &["-Tlint", "-Werror", path], b"") {
        assert_eq!(warnings, "", "{name}");
    }
}
