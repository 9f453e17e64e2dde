//! `apiscript`: runs API scripts against any server that a kubeconfig leads to.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use apiscript::{Script, Target, run_scripts, script};
use clap::Parser;

#[derive(Parser)]
#[command(version, about)]
struct Options {
    /// Where the server is and who we are; else what `$KUBECONFIG` names.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The server, instead of the kubeconfig's.
    #[arg(long)]
    server: Option<String>,
    /// How many scripts run at once.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Runs only scripts with this requirement id, or with this text in their name or file.
    #[arg(long)]
    only: Vec<String>,
    /// What the server can do, where scripts require it: `namespace-lifecycle` and others.
    #[arg(long, value_delimiter = ',')]
    with: Vec<String>,
    /// A shell command that makes the server forget its history.
    #[arg(long)]
    compact: Option<String>,
    /// Prints each requirement id with the number of scripts that check it, and runs nothing.
    #[arg(long)]
    coverage: bool,
    /// Files of scripts, or folders of them.
    #[arg(default_value = "scripts")]
    files: Vec<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let mut scripts = Vec::new();
    for file in &options.files {
        scripts.extend(script::load(file)?);
    }
    scripts.retain(|script| is_wanted(script, &options.only));
    let mut out = std::io::stdout().lock();
    if options.coverage {
        for (id, count) in coverage(&scripts) {
            writeln!(out, "{count:4} {id}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let target = target(&options)?;
    let report = run_scripts(&scripts, &target, options.jobs, |case| {
        let _ = writeln!(out, "{case}"); // a closed pipe is no reason to stop
    });
    writeln!(out, "{report}")?;
    Ok(if report.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn target(options: &Options) -> Result<Target> {
    let from_environment = std::env::var_os("KUBECONFIG").map(PathBuf::from);
    let path = options.kubeconfig.clone().or(from_environment).context("--kubeconfig is missing")?;
    let mut target = Target::from_kubeconfig(&path)?;
    if let Some(server) = &options.server {
        target = target.at(server);
    }
    for ability in &options.with {
        target = target.able(ability);
    }
    if let Some(command) = options.compact.clone() {
        target = target.compacted_by(move || {
            let status = Command::new("sh").arg("-c").arg(&command).status()?;
            if !status.success() {
                bail!("{command}: {status}");
            }
            Ok(())
        });
    }
    Ok(target)
}

fn is_wanted(script: &Script, only: &[String]) -> bool {
    let file = script.file.to_string_lossy();
    only.is_empty()
        || only.iter().any(|word| {
            script.script.contains(word.as_str())
                || file.contains(word.as_str())
                || script.all_ids().contains(&word.as_str())
        })
}

fn coverage(scripts: &[Script]) -> std::collections::BTreeMap<&str, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for script in scripts {
        let mut ids = script.all_ids();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            *counts.entry(id).or_default() += 1;
        }
    }
    counts
}
