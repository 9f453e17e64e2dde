//! Profiles: how often each branch of the program was taken under typical work. The compiler lays
//! out and inlines code by them, so the program of the packages takes a quarter less processor time
//! for a get (docs/performance.md).
//!
//! A profile belongs to a release of rustc, because names of functions depend on it. Functions that
//! have changed since it was made are compiled without it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};

use super::cargo::{rustc_release, sysroot_tool};
use super::{Sources, program};

/// The work that the program is measured under.
struct Work {
    name: &'static str,
    /// The server's arguments besides those of every work.
    server: &'static str,
    /// The client and its arguments. A client that fails has still caused work.
    client: &'static [&'static str],
    /// How much its counts count. The scripts send few requests of each kind: their counts must not
    /// vanish beside those of the load, or the compiler takes their code for unused.
    weight: u32,
}

const WORK: [Work; 4] = [
    Work {
        name: "load",
        server: "",
        client: &[
            "pintle-bench",
            "--only=create,get,update,patch,delete,watch,list,encodings",
            "--clients=16",
            "--watchers=100",
            "--list-sizes=1000",
            "--seconds=2",
        ],
        weight: 1,
    },
    Work {
        name: "http2",
        server: "",
        client: &["pintle-bench", "--http2", "--only=create,get,patch", "--clients=16"],
        weight: 1,
    },
    Work {
        name: "etcd",
        server: "--etcd-servers http://127.0.0.1:12379",
        client: &["pintle-bench", "--only=create,get,update,delete", "--clients=16", "--seconds=2"],
        weight: 1,
    },
    Work { name: "scripts", server: "", client: &["apiscript", "scripts"], weight: 200 },
];

/// How long a server may take to write the kubeconfig.
const PATIENCE: Duration = Duration::from_secs(60);

/// The profile of an architecture for this release of rustc.
fn stored(sources: &Sources) -> Result<PathBuf> {
    let name = format!("{}-rustc-{}.gz", sources.architecture.name, rustc_release()?);
    Ok(sources.root.join("packaging/profiles").join(name))
}

/// Returns the flags of rustc that use the stored profile; none if there is no profile for this
/// release of rustc.
pub(super) fn flags(sources: &Sources) -> Result<String> {
    let stored = stored(sources)?;
    if !stored.exists() {
        eprintln!(
            "without a profile, because there is no {}: `cargo xtask profile` makes it",
            stored.display()
        );
        return Ok(String::new());
    }
    let unpacked = sources.out.join("profile.profdata");
    io::copy(&mut GzDecoder::new(File::open(&stored)?), &mut File::create(&unpacked)?)?;
    // Functions that have changed since the profile was made are no mistake.
    let quiet = "-Cllvm-args=-no-pgo-warn-mismatch -Cllvm-args=-no-pgo-warn-mismatch-comdat-weak";
    Ok(format!(" -Cprofile-use={} {quiet}", unpacked.display()))
}

/// Makes the profile for this release of rustc: measures an instrumented program under typical
/// work. It takes some twenty minutes and needs etcd.
pub(crate) fn make() -> Result<()> {
    let sources = Sources::read(&[])?;
    let tool = sysroot_tool("llvm-profdata")?;
    ensure!(tool.exists(), "no {}: `rustup component add llvm-tools` adds it", tool.display());
    let directory = sources.root.join("target/profile");
    match fs::remove_dir_all(directory.join("counts")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(directory.join("counts"))?,
    }
    eprintln!("1/3: building the instrumented program, and the clients");
    let flags = format!(" -Cprofile-generate={}", directory.join("counts").display());
    let program = program::compile(&sources, &flags, &directory)?;
    let cargo = ["build", "--locked", "-p", "pintle-bench", "-p", "apiscript"];
    let built = Command::new(env!("CARGO"))
        .args(cargo)
        .current_dir(&sources.root)
        .env("CARGO_TARGET_DIR", sources.root.join("target"))
        .status()?;
    ensure!(built.success(), "the clients are not built");
    eprintln!("2/3: measuring");
    let mut inputs = Vec::new();
    for work in &WORK {
        let counts = work.measure(&sources.root, &program, &directory)?;
        inputs.push(format!("--weighted-input={},{}", work.weight, counts.display()));
    }
    eprintln!("3/3: merging");
    let merged = directory.join("merged.profdata");
    let mut merge = Command::new(tool);
    merge.args(["merge", "--sparse", "-o"]).arg(&merged).args(inputs);
    ensure!(merge.status()?.success(), "llvm-profdata failed");
    let stored = stored(&sources)?;
    fs::create_dir_all(sources.root.join("packaging/profiles"))?;
    let mut packed = GzEncoder::new(File::open(merged)?, Compression::best());
    io::copy(&mut packed, &mut File::create(&stored)?)?;
    println!("{}", stored.display());
    Ok(())
}

impl Work {
    /// Runs the server and the client; returns the file of the server's counts.
    fn measure(&self, root: &Path, program: &Path, directory: &Path) -> Result<PathBuf> {
        eprintln!("     {}", self.name);
        let counts = directory.join(format!("counts/{}.profraw", self.name));
        let data = directory.join(format!("counts/{}", self.name));
        fs::create_dir_all(&data)?;
        let _etcd = if self.server.is_empty() { None } else { Some(Stopped(etcd(&data)?)) };
        let kubeconfig = data.join("admin.kubeconfig");
        let mut server = Command::new(program);
        server
            .args(["serve", "--secure-port=0", "--data-dir"])
            .arg(&data)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(self.server.split_whitespace())
            .env("LLVM_PROFILE_FILE", &counts);
        let mut server = Stopped(server.spawn().context("the instrumented program")?);
        let started = Instant::now();
        while !kubeconfig.exists() {
            ensure!(started.elapsed() < PATIENCE, "the server does not write its kubeconfig");
            std::thread::sleep(Duration::from_millis(50));
        }
        let [client, arguments @ ..] = self.client else { bail!("no client") };
        Command::new(root.join("target/debug").join(client))
            .args(arguments)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .current_dir(root)
            .stdout(File::create(data.join("client.log"))?)
            .status()
            .with_context(|| (*client).to_owned())?;
        server.stop()?;
        ensure!(counts.exists(), "the server wrote no counts");
        Ok(counts)
    }
}

fn etcd(data: &Path) -> Result<Child> {
    let (client, peer) = ("http://127.0.0.1:12379", "http://127.0.0.1:12380");
    Command::new("etcd")
        .args(["--log-level=error", "--listen-client-urls", client])
        .args(["--advertise-client-urls", client, "--listen-peer-urls", peer, "--data-dir"])
        .arg(data.join("etcd"))
        .spawn()
        .context("etcd, of Debian's etcd-server")
}

/// A process that is stopped when this is dropped.
struct Stopped(Child);

impl Stopped {
    /// Asks the process to stop, and waits for its end.
    fn stop(&mut self) -> Result<ExitStatus> {
        Command::new("kill").arg(self.0.id().to_string()).status().context("kill")?;
        Ok(self.0.wait()?)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.stop();
        }
    }
}
