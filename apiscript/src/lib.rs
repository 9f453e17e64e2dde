//! API scripts: requests to an API server and the expected responses, as data files, and their
//! runner.
//!
//! The runner runs a script against any server: Pintle in a test's process, or a remote
//! kube-apiserver. It knows HTTP and the encodings of objects, and nothing of Pintle's server; it
//! only uses Pintle's schemas to decode Protobuf and CBOR. A script that fails on a kube-apiserver
//! of the same release is wrong.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::Result;

mod answer;
mod binary;
pub mod differ;
pub mod fuzz;
pub mod http;
pub mod kubeconfig;
pub mod matching;
pub mod projects;

mod random;
pub mod replicas;
mod report;
mod request;
mod run;
mod schemas;
pub mod script;
pub mod siege;
pub mod sweep;
mod target;
pub mod variables;
mod watch;

pub use report::{Case, Outcome, Report};
pub use script::Script;
pub use target::Target;

/// Runs every script below a folder, a few at a time.
pub fn run_dir(dir: &Path, target: &Target) -> Result<Report> {
    Ok(run_scripts(&script::load(dir)?, target, 4, |_| ()))
}

/// Runs scripts, `jobs` at a time; calls `done` when one ends.
///
/// Scripts that compact the server's history affect others, so they run last and alone; so do
/// scripts with `alone: true`.
pub fn run_scripts(
    scripts: &[Script],
    target: &Target,
    jobs: usize,
    mut done: impl FnMut(&Case),
) -> Report {
    let forgets = |script: &Script| script.requires.iter().any(|ability| ability == "compaction");
    let (alone, together): (Vec<_>, Vec<_>) =
        scripts.iter().partition(|script| script.alone || forgets(script));
    let mut cases = run_some(&together, target, jobs.max(1), &mut done);
    cases.extend(run_some(&alone, target, 1, &mut done));
    Report { cases }
}

fn run_some(
    scripts: &[&Script],
    target: &Target,
    jobs: usize,
    done: &mut dyn FnMut(&Case),
) -> Vec<Case> {
    let next = AtomicUsize::new(0);
    let (sender, results) = channel();
    let mut cases: Vec<(usize, Case)> = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                while let Some((index, script)) = take(scripts, next) {
                    let start = Instant::now();
                    let outcome = run::run(script, target);
                    let case = Case {
                        file: script.file.clone(),
                        script: script.script.clone(),
                        outcome,
                        took: start.elapsed(),
                    };
                    if sender.send((index, case)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (index, case) in results {
            done(&case);
            cases.push((index, case));
        }
    });
    cases.sort_by_key(|(index, _)| *index);
    cases.into_iter().map(|(_, case)| case).collect()
}

fn take<'a>(scripts: &[&'a Script], next: &AtomicUsize) -> Option<(usize, &'a Script)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    scripts.get(index).map(|script| (index, *script))
}
