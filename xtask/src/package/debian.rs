//! The Debian package: the program, its systemd unit, and the scripts of the package manager.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::archive::{Tree, gzip};
use super::pages::{COMPLETIONS, Pages};
use super::{Sources, VERSION};

/// The files that are copied from the repository: the paths in the package, and the paths here.
const FILES: [(&str, &str); 3] = [
    ("./lib/systemd/system/pintle.service", "packaging/debian/pintle.service"),
    ("./etc/pintle/config.yaml", "packaging/debian/config.yaml"),
    ("./usr/share/doc/pintle/README.md", "README.md"),
];

/// The scripts that the package manager executes.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes the package.
pub(super) fn write(sources: &Sources) -> Result<PathBuf> {
    let components = sources.components()?;
    let mut data = Tree::new(sources.epoch_seconds);
    data.file("./usr/bin/pintle", 0o755, sources.program()?);
    for (path, source) in FILES {
        data.file(path, 0o644, sources.file(source)?);
    }
    let doc = "./usr/share/doc/pintle";
    data.file(&format!("{doc}/copyright"), 0o644, sources.file("packaging/debian/copyright")?);
    data.file(&format!("{doc}/changelog.gz"), 0o644, gzip(&sources.file("CHANGELOG.md")?)?);
    let licences = gzip(components.licence_texts()?.as_bytes())?;
    data.file(&format!("{doc}/third-party-licenses.gz"), 0o644, licences);
    let bill = gzip(components.bill()?.as_bytes())?;
    data.file(&format!("{doc}/bill-of-materials.cdx.json.gz"), 0o644, bill);
    let pages = Pages::read(sources)?;
    for (page, text) in pages.manual {
        data.file(&format!("./usr/share/man/man1/{page}.gz"), 0o644, gzip(&text)?);
    }
    for ((_, path), script) in COMPLETIONS.iter().zip(pages.completions) {
        data.file(&format!("./{path}"), 0o644, script);
    }
    data.add_parents();

    let mut control = Tree::new(sources.epoch_seconds);
    let kibibytes = data.bytes().div_ceil(1024).to_string();
    let fields = sources.template("packaging/debian/control", &[("size", &kibibytes)])?;
    control.file("./control", 0o644, fields);
    control.file("./conffiles", 0o644, "/etc/pintle/config.yaml\n");
    for script in SCRIPTS {
        control.file(
            &format!("./{script}"),
            0o755,
            sources.file(&format!("packaging/debian/{script}"))?,
        );
    }
    control.add_parents();

    let mut package = b"!<arch>\n".to_vec();
    append(&mut package, "debian-binary", sources.epoch_seconds, b"2.0\n")?;
    append(&mut package, "control.tar.gz", sources.epoch_seconds, &control.gzip()?)?;
    append(&mut package, "data.tar.gz", sources.epoch_seconds, &data.gzip()?)?;
    sources.write(&format!("pintle_{VERSION}_{}.deb", sources.architecture.name), &package)
}

/// Appends a member to an archive of `ar`, which is the outer form of a package (deb(5)).
fn append(archive: &mut Vec<u8>, name: &str, epoch_seconds: u64, content: &[u8]) -> Result<()> {
    let (owner, mode, length) = (0, 0o100_644, content.len());
    let header =
        format!("{name:<16}{epoch_seconds:<12}{owner:<6}{owner:<6}{mode:<8o}{length:<10}`\n");
    ensure!(header.len() == 60, "{name}: a field is too long");
    archive.extend(header.as_bytes());
    archive.extend(content);
    archive.extend((length % 2 == 1).then_some(b'\n'));
    Ok(())
}
