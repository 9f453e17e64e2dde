//! `cargo xtask package`: makes the packages of the program in `target/package/`. The same sources
//! and the same toolchain make the same bytes.

mod archive;
mod cargo;
mod components;
mod debian;
mod image;
mod licences;
mod pages;
mod profile;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail, ensure};

pub(crate) use licences::check as check_licences;
pub(crate) use profile::make as make_profile;

use crate::generate::root;
use components::Components;
use pages::{COMPLETIONS, Pages};

const USAGE: &str = "\
usage: cargo xtask package <what> [--arch amd64|arm64] [--program FILE] [--also CRATE]

  static    build the program without shared libraries: pintle-ARCH; CRATE is built with it
  deb       the Debian package: pintle_VERSION_ARCH.deb
  image     the container image, as an OCI layout: image/
  archive   the program with its licences and its bill of materials: pintle-VERSION-linux-ARCH.tar.gz
  chart     the Helm chart: pintle-chart-VERSION.tgz

All go to target/package. Without --arch they are for this machine. Packages of the program contain FILE, or else
pintle-ARCH, which `static` makes first. An image of one architecture is added to those of others.
";

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An architecture that the program is packaged for.
struct Architecture {
    /// The name that Debian and OCI use.
    name: &'static str,
    /// Rust's name, as in `std::env::consts::ARCH`.
    machine: &'static str,
    /// The target of rustc.
    triple: &'static str,
    /// The compiler of C.
    c_compiler: &'static str,
    /// The linker.
    linker: &'static str,
    /// Debian's packages with the compiler and the linker.
    needs: &'static str,
}

impl Architecture {
    fn is_of_this_machine(&self) -> bool {
        self.machine == std::env::consts::ARCH
    }
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "amd64",
        machine: "x86_64",
        triple: "x86_64-unknown-linux-musl",
        c_compiler: "musl-gcc",
        linker: "cc",
        needs: "musl-tools",
    },
    Architecture {
        name: "arm64",
        machine: "aarch64",
        triple: "aarch64-unknown-linux-musl",
        c_compiler: "aarch64-linux-gnu-gcc -specs=/usr/lib/aarch64-linux-musl/musl-gcc.specs",
        linker: "aarch64-linux-gnu-gcc",
        needs: "gcc-aarch64-linux-gnu musl-dev:arm64",
    },
];

/// The inputs from which every package is made.
struct Sources {
    root: PathBuf,
    /// The directory to which packages are written.
    out: PathBuf,
    architecture: &'static Architecture,
    /// The program, if `--program` names it.
    program: Option<PathBuf>,
    /// Another crate of the workspace that is built with the program.
    also: Option<String>,
    /// The time of all files in packages.
    epoch_seconds: u64,
}

/// Makes the package that the arguments name.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let [what, options @ ..] = arguments else { bail!(USAGE) };
    let sources = Sources::read(options)?;
    fs::create_dir_all(&sources.out)?;
    let made = match *what {
        "static" => program::build(&sources, &profile::flags(&sources)?)?,
        "deb" => debian::write(&sources)?,
        "image" => image::write(&sources)?,
        "archive" => sources.write_archive()?,
        "chart" => sources.write_chart()?,
        _ => bail!(USAGE),
    };
    println!("{}", made.display());
    Ok(())
}

impl Sources {
    fn read(options: &[&str]) -> Result<Self> {
        let root = root();
        let mut read = Self {
            out: root.join("target/package"),
            architecture: &ARCHITECTURES[0],
            program: None,
            also: None,
            epoch_seconds: epoch_seconds(&root)?,
            root,
        };
        let mut name = None;
        for option in options.chunks(2) {
            match option {
                ["--arch", value] => name = Some(*value),
                ["--program", file] => read.program = Some(file.into()),
                ["--also", name] => read.also = Some((*name).to_owned()),
                _ => bail!(USAGE),
            }
        }
        let is_wanted = |it: &&Architecture| match name {
            Some(name) => it.name == name,
            None => it.is_of_this_machine(),
        };
        let found = ARCHITECTURES.iter().find(is_wanted);
        read.architecture = found.ok_or_else(|| anyhow!(USAGE))?;
        Ok(read)
    }

    fn program_path(&self) -> PathBuf {
        let built = self.out.join(format!("pintle-{}", self.architecture.name));
        self.program.clone().unwrap_or(built)
    }

    /// The program to package.
    fn program(&self) -> Result<Vec<u8>> {
        let path = self.program_path();
        fs::read(&path).with_context(|| {
            format!("{}: make it by `cargo xtask package static`, or name another", path.display())
        })
    }

    /// A file of the repository.
    fn file(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.root.join(path)).with_context(|| path.to_owned())
    }

    /// A file of the repository in which `{version}`, `{arch}` and the like are replaced.
    fn template(&self, path: &str, more: &[(&str, &str)]) -> Result<String> {
        let mut text = String::from_utf8(self.file(path)?)?;
        let known = [("version", VERSION), ("arch", self.architecture.name)];
        for (name, value) in known.iter().chain(more) {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        Ok(text)
    }

    fn components(&self) -> Result<Components> {
        Components::of_program(&self.root, self.architecture.triple)
    }

    fn write_archive(&self) -> Result<PathBuf> {
        let name = format!("pintle-{VERSION}-linux-{}", self.architecture.name);
        let components = self.components()?;
        let pages = Pages::read(self)?;
        let mut tree = archive::Tree::new(self.epoch_seconds);
        let mut add = |path: &str, mode, bytes| tree.file(&format!("{name}/{path}"), mode, bytes);
        add("pintle", 0o755, self.program()?);
        add("README.md", 0o644, self.file("README.md")?);
        add("LICENSE", 0o644, self.file("LICENSE")?);
        add("THIRD-PARTY-LICENSES", 0o644, components.licence_texts()?.into_bytes());
        add("bill-of-materials.cdx.json", 0o644, components.bill()?.into_bytes());
        for (page, text) in pages.manual {
            add(&format!("man/man1/{page}"), 0o644, text);
        }
        for ((shell, _), script) in COMPLETIONS.iter().zip(pages.completions) {
            add(&format!("completions/pintle.{shell}"), 0o644, script);
        }
        tree.add_parents();
        self.write(&format!("{name}.tar.gz"), &tree.gzip()?)
    }

    fn write_chart(&self) -> Result<PathBuf> {
        let chart = self.root.join("packaging/chart");
        let metadata = fs::read_to_string(chart.join("Chart.yaml"))?;
        for line in [format!("version: {VERSION}\n"), format!("appVersion: {VERSION}\n")] {
            ensure!(
                metadata.contains(&format!("\n{line}")),
                "Chart.yaml has not the version {VERSION}"
            );
        }
        let mut tree = archive::Tree::new(self.epoch_seconds);
        for path in files(&chart)? {
            let inside = path.strip_prefix(&chart)?.display().to_string();
            tree.file(&format!("pintle/{inside}"), 0o644, fs::read(&path)?);
        }
        self.write(&format!("pintle-chart-{VERSION}.tgz"), &tree.gzip()?)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.out.join(name);
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// The files below a directory, sorted.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The time of the sources: `SOURCE_DATE_EPOCH`, or the time of the last commit.
fn epoch_seconds(root: &Path) -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().context("SOURCE_DATE_EPOCH");
    }
    let git = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output();
    let git = git.context("git, or else set SOURCE_DATE_EPOCH")?;
    ensure!(git.status.success(), "not a git repository: set SOURCE_DATE_EPOCH");
    Ok(String::from_utf8(git.stdout)?.trim().parse()?)
}
