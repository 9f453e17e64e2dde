//! The file of the log: when it is large, another one is begun, and old ones go. Their names and the rules
//! are lumberjack's, which upstream writes by: `audit-2006-01-02T15-04-05.000.log`, with `.gz` behind it
//! where it is compressed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use pintle_meta::time;

use crate::config::AuditLog;
use crate::machine::now;

const MEBIBYTE: u64 = 1024 * 1024;
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
const COMPRESSED: &str = ".gz";

/// What is written to.
pub(super) enum File {
    /// Standard output.
    Output,
    /// A file that is exchanged when it is large.
    Rotating(Rotating),
}

pub(super) struct Rotating {
    file: fs::File,
    path: PathBuf,
    /// How many bytes there are in it.
    length: u64,
    /// How many there may be.
    length_max: u64,
    /// Whether nothing was written yet: the first lines may not fill the file, as lumberjack has it.
    is_first: bool,
    old: Arc<Mutex<Old>>,
}

/// What becomes of files that are no longer written to.
struct Old {
    path: PathBuf,
    files_max: usize,
    age_max_micros: Option<i64>,
    compress: bool,
}

impl File {
    /// Opens the file, which is made where there is none, for its owner alone.
    pub(super) fn open(options: &AuditLog) -> io::Result<Self> {
        let Some(path) = &options.path else { return Ok(Self::Output) };
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let length = file.metadata()?.len();
        let length_max = match options.max_size_mebibytes {
            0 => u64::MAX,
            mebibytes => u64::from(mebibytes) * MEBIBYTE,
        };
        let age_max_micros = i64::from(options.max_age_days) * DAY_MICROS;
        let old = Old {
            path: path.clone(),
            files_max: options.max_backups as usize,
            age_max_micros: (age_max_micros > 0).then_some(age_max_micros),
            compress: options.compress,
        };
        let old = Arc::new(Mutex::new(old));
        let is_rotating = options.max_size_mebibytes > 0;
        let file = Rotating { file, path: path.clone(), length, length_max, is_first: true, old };
        // Where no file is ever begun anew, others of such names are somebody else's.
        if is_rotating {
            file.tidy();
        }
        Ok(Self::Rotating(file))
    }

    /// Whether so many bytes more go into the file, or into one that is empty.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        match self {
            Self::Output => true,
            Self::Rotating(file) => file.length + bytes as u64 <= file.length_max,
        }
    }

    /// Writes whole lines, or nothing.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Output => {
                let mut output = io::stdout().lock();
                output.write_all(lines)?;
                output.flush()
            }
            Self::Rotating(file) => file.write(lines),
        }
    }
}

impl Rotating {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = lines.len() as u64;
        if length > self.length_max {
            let max = self.length_max;
            let why = format!("write length {length} exceeds maximum file size {max}");
            return Err(io::Error::other(why));
        }
        let is_full = self.length > 0 && self.is_first && self.length + length == self.length_max;
        self.is_first = false;
        if is_full || self.length + length > self.length_max {
            self.rotate()?;
        }
        match self.file.write_all(lines) {
            Ok(()) => self.length += length,
            Err(why) => {
                // The start of a line would spoil the next one.
                self.file.set_len(self.length)?;
                return Err(why);
            }
        }
        Ok(())
    }

    /// Gives the file another name, and begins a new one with the same permissions.
    fn rotate(&mut self) -> io::Result<()> {
        let mode = self.file.metadata()?.permissions().mode();
        if self.path.exists() {
            fs::rename(&self.path, free_name(&self.path))?;
        }
        self.file = OpenOptions::new().create(true).append(true).mode(mode).open(&self.path)?;
        self.length = 0;
        self.tidy();
        Ok(())
    }

    /// Compresses and removes old files, while the log goes on.
    fn tidy(&self) {
        let old = self.old.clone();
        let tidy = move || {
            if let Err(why) = old.lock().tidy() {
                tracing::warn!("old files of the audit log cannot be put in order: {why}");
            }
        };
        if let Err(why) = thread::Builder::new().name("audit-files".to_owned()).spawn(tidy) {
            tracing::warn!("old files of the audit log are left as they are: {why}");
        }
    }
}

impl Old {
    fn tidy(&self) -> io::Result<()> {
        if self.files_max == 0 && self.age_max_micros.is_none() && !self.compress {
            return Ok(());
        }
        let mut files = self.files()?;
        files.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        let mut times: Vec<i64> = files.iter().map(|(time, _)| *time).collect();
        times.dedup();
        let first_that_goes = (self.files_max > 0).then(|| times.get(self.files_max)).flatten();
        let oldest = self.age_max_micros.map(|age| now().unix_micros - age);
        for (time, path) in files {
            let is_one_too_many = first_that_goes.is_some_and(|first| time <= *first);
            if is_one_too_many || oldest.is_some_and(|oldest| time < oldest) {
                fs::remove_file(path)?;
            } else if self.compress && path.extension().is_none_or(|end| end != "gz") {
                compress(&path)?;
            }
        }
        Ok(())
    }

    /// The old files, and when each was given its name.
    fn files(&self) -> io::Result<Vec<(i64, PathBuf)>> {
        let (prefix, suffix) = around_time(&self.path);
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut files = Vec::new();
        for entry in fs::read_dir(directory.unwrap_or_else(|| Path::new(".")))? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let name = name.strip_suffix(COMPRESSED).unwrap_or(name);
            let time = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(&suffix));
            if let Some(time) = time.and_then(parse_time) {
                files.push((time, path));
            }
        }
        Ok(files)
    }
}

/// Compresses a file and removes it; what is compressed appears as a whole.
fn compress(path: &Path) -> io::Result<()> {
    let with_end = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let mut source = fs::File::open(path)?;
    let mode = source.metadata()?.permissions().mode();
    let unfinished = with_end(".gz.tmp");
    let mut options = OpenOptions::new();
    let target = options.create(true).write(true).truncate(true).mode(mode).open(&unfinished)?;
    let mut target = GzEncoder::new(target, Compression::default());
    io::copy(&mut source, &mut target)?;
    target.finish()?;
    fs::rename(&unfinished, with_end(COMPRESSED))?;
    fs::remove_file(path)
}

/// What stands before and behind the time in the names of old files.
fn around_time(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
    };
    let suffix = path.extension().map_or_else(String::new, |end| format!(".{}", text(Some(end))));
    (format!("{}-", text(path.file_stem())), suffix)
}

/// A name with the time in it that no file has.
fn free_name(path: &Path) -> PathBuf {
    let (prefix, suffix) = around_time(path);
    let name = |micros| path.with_file_name(format!("{prefix}{}{suffix}", format_time(micros)));
    let now = now().unix_micros;
    let names = (0..).map(|millisecond| name(now + millisecond * 1000));
    let mut free = names.filter(|name| {
        let mut compressed = name.as_os_str().to_owned();
        compressed.push(COMPRESSED);
        !name.exists() && !Path::new(&compressed).exists()
    });
    free.next().unwrap_or_else(|| name(now))
}

/// `2006-01-02T15-04-05.000`, in UTC.
fn format_time(unix_micros: i64) -> String {
    const LENGTH: usize = "2006-01-02T15:04:05.000".len();
    time::format_micro(unix_micros).replace(':', "-").chars().take(LENGTH).collect()
}

fn parse_time(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once('T')?;
    time::parse_micro(&format!("{date}T{}000Z", clock.replace('-', ":"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_the_time() {
        let micros = time::parse_micro("2026-11-23T21:12:30.814612Z").unwrap();
        assert_eq!(format_time(micros), "2026-11-23T21-12-30.814");
        assert_eq!(parse_time("2026-11-23T21-12-30.814"), Some(micros - 612));
        assert_eq!(parse_time("x"), None);
        let (prefix, suffix) = around_time(Path::new("/var/log/kube-apiserver/audit.log"));
        assert_eq!((prefix.as_str(), suffix.as_str()), ("audit-", ".log"));
        assert_eq!(around_time(Path::new("audit")), ("audit-".to_owned(), String::new()));
    }
}
