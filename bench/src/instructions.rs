//! Instruction counts of fixed sequences of requests, by callgrind: unlike times they hardly depend
//! on the machine, so that a small regression shows.
//!
//! One client sends one request after the other to an ephemeral server. The counts are of all
//! threads of the server, so the watch caches, the committer and the allocator are included.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::call::{Call, NAME, VALUE, digits};
use crate::cases::Namespace;
use crate::objects::{self, Sample};
use crate::process::Program;
use crate::server::Connection;

/// The requests of a sequence that are counted.
const COUNTED: u64 = 200;
/// The requests before them, after which caches and buffers have their sizes.
const BEFORE: u64 = 50;
/// A count that differs by this share or less is not a change.
const TOLERANCE: f64 = 0.02;

/// An audit policy that records every request without its objects.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n";

/// Instructions per request, by sequence.
pub type Counts = BTreeMap<String, u64>;

/// Counts the instructions of each sequence. The profiles of callgrind are moved to a folder, if
/// one is given, under the names of the sequences.
pub async fn measure(binary: &Path, pod: Option<&Path>, profiles: Option<&Path>) -> Result<Counts> {
    let dir = tempfile::tempdir()?;
    let policy = dir.path().join("policy.yaml");
    std::fs::write(&policy, POLICY)?;
    let audit = format!(
        "--audit-policy-file {} --audit-log-path {} --audit-log-mode batch",
        policy.display(),
        dir.path().join("audit.log").display(),
    );
    let mut counts = Counts::new();
    for (prefix, flags) in [("", ""), ("with audit: ", &*audit)] {
        let server = Counted::start(binary, dir.path(), flags, profiles).await?;
        for sample in [objects::config_map(), objects::pod(pod)?] {
            server.measure_sample(prefix, &sample, &mut counts).await?;
        }
        server.running.stop().await?;
    }
    Ok(counts)
}

/// A server under callgrind.
struct Counted {
    running: crate::process::Running,
    pid: u32,
    /// The prefix of the files with its counts.
    out: PathBuf,
    /// The folder to which the files are moved.
    profiles: Option<PathBuf>,
}

impl Counted {
    async fn start(
        binary: &Path,
        dir: &Path,
        flags: &str,
        profiles: Option<&Path>,
    ) -> Result<Self> {
        let (out, kubeconfig) = (dir.join("counts"), dir.join("admin.kubeconfig"));
        if kubeconfig.exists() {
            std::fs::remove_file(&kubeconfig)?; // the previous server wrote it
        }
        let start = format!(
            "valgrind --quiet --tool=callgrind --callgrind-out-file={} {} serve --ephemeral \
             --kubeconfig {} --secure-port 0 {flags} 2>/dev/null",
            out.display(),
            binary.display(),
            kubeconfig.display(),
        );
        let running = Program { start, stop: None, kubeconfig }.start().await?;
        let pid = running.pid()?;
        Ok(Self { running, pid, out, profiles: profiles.map(Path::to_owned) })
    }

    /// Counts a create, get, update, patch and delete of a kind of object.
    async fn measure_sample(
        &self,
        prefix: &str,
        sample: &Sample,
        counts: &mut Counts,
    ) -> Result<()> {
        let server = &self.running.server;
        let namespace = Namespace::create(server, sample.resource).await?;
        let sample = match sample.resource {
            "pods" => sample.owned(&namespace.create_owner().await?)?,
            _ => sample.clone(),
        };
        let path = namespace.path(sample.resource);
        let named = format!("{path}/a{NAME}");
        let (patch, merge) = (&*sample.patch, "application/merge-patch+json");
        let create = server.call("POST", &path, "application/json", &sample.body);
        let mut connection = server.connect().await?;
        let mut measured = async |operation, call| -> Result<()> {
            let name = format!("{prefix}{operation} {}", sample.label);
            let count = self.count(&name, &mut connection, call).await?;
            counts.insert(name, count);
            Ok(())
        };
        measured("create", create).await?;
        let (_, first) = server.ask("GET", &format!("{path}/a{}", digits(0)), "", &[]).await?;
        let update = as_sent(&first)?;
        let calls = [
            ("update", server.call("PUT", &named, "application/json", &update)),
            ("get", server.call("GET", &named, "", "")),
            ("patch", server.call("PATCH", &named, merge, patch)),
            ("delete", server.call("DELETE", &format!("{named}?gracePeriodSeconds=0"), "", "")),
        ];
        for (operation, call) in calls {
            measured(operation, call).await?;
        }
        Ok(())
    }

    /// The instructions of a call, on average over the last `COUNTED` calls.
    async fn count(&self, name: &str, connection: &mut Connection, mut call: Call) -> Result<u64> {
        for number in 0..BEFORE + COUNTED {
            if number == BEFORE {
                self.control("zero")?;
            }
            call.name(number);
            call.value(number);
            let answer = connection.exchange(call.bytes(), None).await?;
            ensure!(answer.status < 300, "{} is answered {}", call.method, answer.status);
        }
        self.control("dump")?;
        let profile = newest(&self.out)?;
        let text = std::fs::read_to_string(&profile)?;
        let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
        let total: u64 = total.context("callgrind writes totals")?.trim().parse()?;
        if let Some(folder) = &self.profiles {
            let name = name.replace([':', ' '], "-");
            std::fs::write(folder.join(format!("callgrind.out.{name}")), text)?;
        }
        std::fs::remove_file(profile)?;
        Ok(total / COUNTED)
    }

    /// Sends a command to callgrind.
    fn control(&self, command: &str) -> Result<()> {
        let output = Command::new("vgdb")
            .args([&format!("--pid={}", self.pid), command])
            .stdin(Stdio::null())
            .output()
            .context("vgdb, which is a part of valgrind, controls the counting")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "vgdb {command}: {text}");
        Ok(())
    }
}

/// An object that the server returned, as a client sends it in an update of any of the objects.
fn as_sent(object: &[u8]) -> Result<String> {
    let mut object: Value = serde_json::from_slice(object)?;
    let metadata = object["metadata"].as_object_mut().context("an object has metadata")?;
    for of_one in ["uid", "resourceVersion", "managedFields"] {
        metadata.remove(of_one);
    }
    metadata.insert("name".to_owned(), format!("a{NAME}").into());
    object["metadata"]["labels"]["changing"] = VALUE.into();
    Ok(object.to_string())
}

/// The only file with counts, `PREFIX.NUMBER`: earlier ones are removed once they are read.
fn newest(prefix: &Path) -> Result<PathBuf> {
    let parent = prefix.parent().context("the counts are in a folder")?;
    for entry in std::fs::read_dir(parent)? {
        let path = entry?.path();
        if path.file_stem() == prefix.file_name() && path.extension().is_some() {
            return Ok(path);
        }
    }
    bail!("callgrind writes no counts")
}

/// Counts beside those that were recorded.
pub struct Changes<'a> {
    /// The recorded counts.
    pub recorded: &'a Counts,
    /// The counts of this run.
    pub counted: &'a Counts,
}

impl Changes<'_> {
    /// Whether some sequence takes noticeably more instructions than recorded.
    pub fn has_regressions(&self) -> bool {
        self.counted.iter().any(|(name, count)| self.change(name, *count) > TOLERANCE)
    }

    /// The share by which a count exceeds the recorded one.
    fn change(&self, name: &str, count: u64) -> f64 {
        let recorded = self.recorded.get(name).copied().unwrap_or(count).max(1);
        count as f64 / recorded as f64 - 1.0
    }
}

impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:40} {:>12} {:>12}", "instructions per request", "recorded", "now")?;
        for (name, count) in self.counted {
            let recorded = self.recorded.get(name).map_or_else(String::new, u64::to_string);
            let change = self.change(name, *count);
            let mark = match change {
                more if more > TOLERANCE => "  regression",
                less if less < -TOLERANCE => "  improvement",
                _ => "",
            };
            let percent = change * 100.0;
            writeln!(f, "{name:40} {recorded:>12} {count:>12} {percent:>+6.1} %{mark}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_beyond_the_tolerance_is_a_regression() {
        let counts = |count| Counts::from([("get".to_owned(), count)]);
        for (recorded, counted, expected) in [
            (counts(1000), counts(1019), false),
            (counts(1000), counts(1021), true),
            (counts(1000), counts(500), false),
            (Counts::new(), counts(500), false),
        ] {
            let changes = Changes { recorded: &recorded, counted: &counted };
            assert_eq!(changes.has_regressions(), expected, "{changes}");
        }
    }
}
