//! Rotation of the log: replaces the file at its maximum size and removes old files. The names and
//! rules are those of lumberjack, which upstream uses: `audit-2006-01-02T15-04-05.000.log`, and
//! with `.gz` at the end after compression.

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

/// The output of the log.
pub(super) enum File {
    /// Standard output.
    Output,
    /// A file that is replaced at its maximum size.
    Rotating(Rotating),
}

pub(super) struct Rotating {
    file: fs::File,
    path: PathBuf,
    /// Its length in bytes.
    length: u64,
    /// Its maximum length in bytes.
    length_max: u64,
    /// True before the first write, which must not fill the file exactly, as in lumberjack.
    is_first: bool,
    old: Arc<Mutex<Old>>,
}

/// The rules by which old files are compressed and removed.
struct Old {
    path: PathBuf,
    files_max: usize,
    age_max_micros: Option<i64>,
    compress: bool,
}

impl File {
    /// Opens the file. A new file is only accessible to its owner.
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
        // Without rotation, files with such names belong to another program.
        if is_rotating {
            file.clean_up();
        }
        Ok(Self::Rotating(file))
    }

    /// Whether the file has room for another `bytes` bytes.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        match self {
            Self::Output => true,
            Self::Rotating(file) => file.length + bytes as u64 <= file.length_max,
        }
    }

    /// Writes complete lines. If the write to a file fails, removes the lines that were written.
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
        // Another program may have truncated the file, so its length is not `self.length`.
        let before = self.file.metadata()?.len();
        if let Err(why) = self.file.write_all(lines) {
            // Removes a partial line, which would corrupt the next one.
            self.file.set_len(before)?;
            return Err(why);
        }
        self.length += length;
        Ok(())
    }

    /// Renames the file, and creates a new one with the same permissions.
    fn rotate(&mut self) -> io::Result<()> {
        let mode = self.file.metadata()?.permissions().mode();
        if self.path.exists() {
            fs::rename(&self.path, free_name(&self.path))?;
        }
        self.file = OpenOptions::new().create(true).append(true).mode(mode).open(&self.path)?;
        self.length = 0;
        self.clean_up();
        Ok(())
    }

    /// Compresses and removes old files on another thread.
    fn clean_up(&self) {
        let old = self.old.clone();
        let clean_up = move || {
            if let Err(why) = old.lock().clean_up() {
                tracing::warn!("cannot compress or remove old files of the audit log: {why}");
            }
        };
        if let Err(why) = thread::Builder::new().name("audit-files".to_owned()).spawn(clean_up) {
            tracing::warn!(
                "cannot start a thread, so old files of the audit log are not removed: {why}"
            );
        }
    }
}

impl Old {
    fn clean_up(&self) -> io::Result<()> {
        if self.files_max == 0 && self.age_max_micros.is_none() && !self.compress {
            return Ok(());
        }
        let mut files = self.files()?;
        files.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        let mut times: Vec<i64> = files.iter().map(|(time, _)| *time).collect();
        times.dedup();
        let newest_surplus = (self.files_max > 0).then(|| times.get(self.files_max)).flatten();
        let oldest = self.age_max_micros.map(|age| now().unix_micros - age);
        for (time, path) in files {
            let is_surplus = newest_surplus.is_some_and(|first| time <= *first);
            if is_surplus || oldest.is_some_and(|oldest| time < oldest) {
                fs::remove_file(path)?;
            } else if self.compress && path.extension().is_none_or(|end| end != "gz") {
                compress(&path)?;
            }
        }
        Ok(())
    }

    /// The old files, each with the time at which it was renamed.
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

/// Compresses a file and removes it. The compressed file appears complete, by a rename.
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

/// The prefix and the suffix of the time in the names of old files.
fn around_time(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
    };
    let suffix = path.extension().map_or_else(String::new, |end| format!(".{}", text(Some(end))));
    (format!("{}-", text(path.file_stem())), suffix)
}

/// A name that no file has, with the current time or the first later millisecond that is free.
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
    fn names_contain_the_time() {
        let micros = time::parse_micro("2026-11-23T21:12:30.814612Z").unwrap();
        assert_eq!(format_time(micros), "2026-11-23T21-12-30.814");
        assert_eq!(parse_time("2026-11-23T21-12-30.814"), Some(micros - 612));
        assert_eq!(parse_time("x"), None);
        let (prefix, suffix) = around_time(Path::new("/var/log/kube-apiserver/audit.log"));
        assert_eq!((prefix.as_str(), suffix.as_str()), ("audit-", ".log"));
        assert_eq!(around_time(Path::new("audit")), ("audit-".to_owned(), String::new()));
    }
}
