//! Which version this server says it is (OAS-05).

use serde::Serialize;

/// The major version of the API that is served.
pub(crate) const MAJOR: &str = "1";
/// The minor version of the API that is served.
pub(crate) const MINOR: &str = "36";
/// The version in the form that clients' skew checks read, with this program's own behind it.
pub const GIT_VERSION: &str = concat!("v1.36.0+pintle-", env!("CARGO_PKG_VERSION"));

/// The Go that this program is made with.
pub(crate) const GO_VERSION: &str = "none";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    major: &'static str,
    minor: &'static str,
    emulation_major: &'static str,
    emulation_minor: &'static str,
    min_compatibility_major: &'static str,
    min_compatibility_minor: &'static str,
    git_version: &'static str,
    git_commit: &'static str,
    git_tree_state: &'static str,
    build_date: &'static str,
    go_version: &'static str,
    compiler: &'static str,
    platform: &'static str,
}

/// The body of `/version`, as compact JSON.
pub(crate) fn json() -> Vec<u8> {
    let version = Version {
        major: MAJOR,
        minor: MINOR,
        emulation_major: MAJOR,
        emulation_minor: MINOR,
        min_compatibility_major: MAJOR,
        min_compatibility_minor: "35",
        git_version: GIT_VERSION,
        git_commit: option_env!("PINTLE_COMMIT").unwrap_or("unknown"),
        git_tree_state: "clean",
        build_date: "1970-01-01T00:00:00Z",
        go_version: GO_VERSION,
        compiler: "rustc",
        platform: PLATFORM,
    };
    serde_json::to_vec(&version).expect("a struct of texts has a JSON form")
}

/// In Go's words for operating systems and processors.
const PLATFORM: &str = match (cfg!(target_os = "macos"), cfg!(target_arch = "aarch64")) {
    (false, false) => "linux/amd64",
    (false, true) => "linux/arm64",
    (true, false) => "darwin/amd64",
    (true, true) => "darwin/arm64",
};
