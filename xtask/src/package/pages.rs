//! The manual pages and the completions, which the program itself prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Sources, files};

/// The shells, and where Debian keeps the completions of each.
pub(super) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/pintle"),
    ("zsh", "usr/share/zsh/vendor-completions/_pintle"),
    ("fish", "usr/share/fish/vendor_completions.d/pintle.fish"),
];

/// The texts that the program prints about its command line, the same on all architectures.
pub(super) struct Pages {
    /// The name of each manual page, with its text.
    pub(super) manual: Vec<(String, Vec<u8>)>,
    /// The completions, in the order of [`COMPLETIONS`].
    pub(super) completions: Vec<Vec<u8>>,
}

impl Pages {
    pub(super) fn read(sources: &Sources) -> Result<Self> {
        let program = runnable(sources)?;
        let directory = sources.out.join("man1");
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        output(&program, &["man", "--directory", &directory.to_string_lossy()])?;
        let manual = files(&directory)?.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, fs::read(&path)?))
        });
        let completions = COMPLETIONS.map(|(shell, _)| output(&program, &["completion", shell]));
        let pages = Self {
            manual: manual.collect::<Result<_>>()?,
            completions: completions.into_iter().collect::<Result<_>>()?,
        };
        fs::remove_dir_all(&directory)?;
        Ok(pages)
    }
}

/// A program that this machine can execute: the packaged one, or that of this machine's
/// architecture.
fn runnable(sources: &Sources) -> Result<PathBuf> {
    if sources.architecture.is_of_this_machine() {
        return Ok(sources.program_path());
    }
    let own = super::ARCHITECTURES.iter().find(|it| it.is_of_this_machine());
    let own =
        own.context("no package is for this machine, so its manual pages cannot be printed")?;
    let path = sources.out.join(format!("pintle-{}", own.name));
    ensure!(
        path.exists(),
        "{}: the manual pages come from it; make it by `cargo xtask package static --arch {}`",
        path.display(),
        own.name
    );
    Ok(path)
}

fn output(program: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| program.display().to_string())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {}: {errors}", program.display(), arguments.join(" "));
    Ok(output.stdout)
}
