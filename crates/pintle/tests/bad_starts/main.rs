//! Starts with a file that is wrong. Each ends at once with exit code 1 and an error that names the flag, the
//! file and, as far as the file has such, the line or the field; no error shows a secret of the file.

mod admission;
mod files;
mod rows;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rows::{Content, ROWS, Row, SECRET};

/// Far more than a start takes on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);
/// How many starts there are at once.
const AT_ONCE: usize = 4;

/// What a start is to come to.
enum Expected<'a> {
    Ready,
    /// An error with the name of the flag, the path of the file, and these texts.
    Refusal(&'a [&'a str]),
}

#[test]
fn wrong_files_are_told_of() {
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

/// What is not as expected of a row.
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
    /// The directory of what only this row's starts use.
    own: &'a Path,
    pki: &'a Path,
}

impl Start<'_> {
    /// The file that is wrong.
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

    /// Makes a file that this process may not read. False where it may read every file.
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
        let told = format!("exit code {code:?}: {text}");
        let Expected::Refusal(texts) = expected else {
            return if code.is_none() { Ok(()) } else { Err(told) };
        };
        let flags = self.fill(self.row.flags);
        let flag = flags.split('=').next().expect("a flag");
        let prefix = format!("pintle: {flag}: ");
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with(&prefix)).collect();
        let has_path = ["{file}", "{outer}"].iter().any(|path| text.contains(&self.fill(path)));
        let missing = texts.iter().find(|part| !text.contains(**part));
        match (code, lines.as_slice(), missing) {
            _ if text.contains(SECRET) => Err(format!("the error shows a secret: {told}")),
            (Some(1), [_], None) if has_path => Ok(()),
            (Some(1), [_], None) => Err(format!("the path of the file is missing: {told}")),
            (Some(1), [_], Some(part)) => Err(format!("{part:?} is missing: {told}")),
            (Some(1), _, _) => Err(format!("no single line begins with {prefix:?}: {told}")),
            _ => Err(told),
        }
    }

    /// The exit code and the standard error of a start; no code if the server became ready.
    fn run(&self) -> (Option<i32>, String) {
        let flags = self.fill(self.row.flags);
        let mut server = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(["serve", "--secure-port=0", "--kubeconfig=admin.kubeconfig"])
            .args((!flags.contains("--etcd-servers")).then_some("--ephemeral"))
            .args(flags.split_whitespace())
            .current_dir(self.own)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
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
}
