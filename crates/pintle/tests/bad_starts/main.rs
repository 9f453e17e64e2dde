//! Starts that must fail. Each ends at once with an error that names the flag and, if it is about a
//! file, the file, and mostly the line or the field; no error shows a secret of a file. With good
//! files, the server starts.
//!
//! `rows` and `admission` have the files that flags name, `values` the values of flags,
//! `directories` the data directories.

mod admission;
mod directories;
mod files;
mod rows;
mod values;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rows::{Content, ROWS, Row, SECRET};

/// The limit of a start; far more than a start takes on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);
/// The number of concurrent starts.
const AT_ONCE: usize = 4;

/// The expected result of a start.
enum Expected<'a> {
    Ready,
    /// An error with the name of the flag, the path of the file, and these texts.
    Refusal(&'a [&'a str]),
}

#[test]
fn an_error_about_a_file_names_the_flag_and_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = directory.path().join("pki");
    files::write_pki(&pki);
    let rows: Vec<&Row> = ROWS.iter().chain(admission::ROWS).collect();
    let next = AtomicUsize::new(0);
    let check_rows = || {
        let mut wrong = String::new();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.push_str(&check(row, directory.path(), &pki));
        }
        wrong
    };
    let wrong: String = std::thread::scope(|scope| {
        let threads = [(); AT_ONCE].map(|()| scope.spawn(check_rows));
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns the differences from a row's expectations.
fn check(row: &Row, directory: &Path, pki: &Path) -> String {
    let own = tempfile::tempdir_in(directory).expect("a directory");
    let start = Start { row, own: own.path(), pki };
    let mut wrong = String::new();
    let mut expect = |case: &str, expected: &Expected<'_>| {
        if let Err(why) = start.check(expected) {
            let _ = writeln!(wrong, "{} ({case}): {why}", row.flags);
        }
        start.remove_file();
    };
    expect("missing", &Expected::Refusal(&["No such file or directory"]));
    fs::create_dir(start.file()).expect("a directory");
    match row.directory_is_read {
        true => expect("directory", &Expected::Ready),
        false => expect("directory", &Expected::Refusal(&["Is a directory"])),
    }
    if start.make_unreadable() {
        expect("unreadable", &Expected::Refusal(&["Permission denied"]));
    }
    start.remove_file();
    start.write("");
    match row.empty {
        None => expect("empty", &Expected::Ready),
        Some(text) => expect("empty", &Expected::Refusal(&[text])),
    }
    for (content, texts) in row.wrong {
        start.put(content);
        expect(&format!("{content:?}"), &Expected::Refusal(texts));
    }
    if let Some(content) = &row.good {
        start.put(content);
        expect("good", &Expected::Ready);
    }
    wrong
}

/// A start of the server with the flags of a row.
struct Start<'a> {
    row: &'a Row,
    /// The directory of this row's starts.
    own: &'a Path,
    pki: &'a Path,
}

impl Start<'_> {
    /// The file whose content a row varies.
    fn file(&self) -> PathBuf {
        self.own.join("file")
    }

    fn write(&self, text: &str) {
        fs::write(self.file(), text).expect("written");
    }

    fn put(&self, content: &Content) {
        match content {
            Content::Text(text) => self.write(&self.fill(text)),
            Content::Copy(name) => {
                fs::copy(self.pki.join(name), self.file()).expect("copied");
            }
        }
    }

    fn remove_file(&self) {
        let file = self.file();
        let removed = if file.is_dir() { fs::remove_dir(&file) } else { fs::remove_file(&file) };
        drop(removed); // it may not be there
    }

    /// Makes the file unreadable. False if this process may read every file.
    fn make_unreadable(&self) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        self.write("");
        let none = fs::Permissions::from_mode(0o0);
        fs::set_permissions(self.file(), none).expect("permissions are set");
        fs::read(self.file()).is_err()
    }

    fn fill(&self, text: &str) -> String {
        let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        text.replace("{file}", &path(&self.file()))
            .replace("{outer}", &path(&self.own.join("outer")))
            .replace("{pki}", &path(self.pki))
    }

    fn check(&self, expected: &Expected<'_>) -> Result<(), String> {
        if let Some(outer) = self.row.outer {
            fs::write(self.own.join("outer"), self.fill(outer)).expect("written");
        }
        let (code, text) = self.run();
        let output = format!("exit code {code:?}: {text}");
        let Expected::Refusal(texts) = expected else {
            return if code.is_none() { Ok(()) } else { Err(output) };
        };
        let flags = self.fill(self.row.flags);
        let flag = flags.split('=').next().expect("a flag");
        let prefix = format!("pintle: {flag}: ");
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with(&prefix)).collect();
        let has_path = ["{file}", "{outer}"].iter().any(|path| text.contains(&self.fill(path)));
        let missing = texts.iter().find(|part| !text.contains(**part));
        match (code, lines.as_slice(), missing) {
            _ if text.contains(SECRET) => Err(format!("the error shows a secret: {output}")),
            (Some(1), [_], None) if has_path => Ok(()),
            (Some(1), [_], None) => Err(format!("the path of the file is missing: {output}")),
            (Some(1), [_], Some(part)) => Err(format!("{part:?} is missing: {output}")),
            (Some(1), _, _) => Err(format!("no single line begins with {prefix:?}: {output}")),
            _ => Err(output),
        }
    }

    fn run(&self) -> (Option<i32>, String) {
        let flags = self.fill(self.row.flags);
        let mut command = serve(self.own);
        command.args((!flags.contains("--etcd-servers")).then_some("--ephemeral"));
        run(command.args(flags.split_whitespace()))
    }
}

/// A start in a directory, with any free port.
fn serve(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    command.args(["serve", "--secure-port=0", "--kubeconfig=admin.kubeconfig"]);
    command.current_dir(directory);
    command
}

/// Returns the exit code and the standard error of a start; no code if the server became ready.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut server = spawned.expect("the program starts");
    let out = server.stdout.take().expect("piped");
    let (sender, first_line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(out).read_line(&mut line); // empty at the end
        sender.send(line)
    });
    let line = first_line.recv_timeout(START_MAX);
    let has_ended = line.as_ref().is_ok_and(String::is_empty);
    if !has_ended {
        server.kill().expect("killed");
    }
    let output = server.wait_with_output().expect("it ended");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_ready = line.is_ok_and(|line| line.starts_with("pintle ready"));
    let code = if is_ready { None } else { Some(output.status.code().unwrap_or(-1)) };
    (code, text)
}

#[test]
fn an_error_about_a_value_names_the_flag_and_what_is_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    for (flags, texts) in values::ROWS {
        let (code, text) =
            run(serve(directory.path()).arg("--ephemeral").args(flags.split_whitespace()));
        assert!(matches!(code, Some(1 | 2)), "{flags}: exit code {code:?}: {text}");
        for part in *texts {
            assert!(text.contains(part), "{flags}: {part:?} is missing: {text}");
        }
    }
}

#[test]
fn an_error_about_a_data_directory_names_the_file_and_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    for (what, spoil, texts) in directories::ROWS {
        let start = || run(serve(directory.path()).args(["--data-dir", "data"]));
        assert_eq!(start().0, None, "{what}: the first start makes the directory");
        spoil(&data);
        let (code, text) = start();
        assert_eq!(code, Some(1), "{what}: {text}");
        let last = text.lines().last().unwrap_or_default();
        for part in *texts {
            let part = part.replace("{dir}", "data");
            assert!(last.contains(&part), "{what}: {part:?} is missing: {text}");
        }
        assert!(!text.contains("panicked"), "{what}: {text}");
        let removed =
            if data.is_dir() { fs::remove_dir_all(&data) } else { fs::remove_file(&data) };
        removed.expect("removed");
    }
}
