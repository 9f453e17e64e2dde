//! The version of this server (OAS-05).

use serde::Serialize;

use crate::EffectiveVersion;

/// The major version of the API that is served.
pub(crate) const MAJOR: &str = "1";
/// The minor version of the API that is served.
pub(crate) const MINOR: &str = "36";
/// The version for clients' skew checks, with this program's version as a suffix.
pub const GIT_VERSION: &str = concat!("v1.36.0+pintle-", env!("CARGO_PKG_VERSION"));

/// The Go version of the build: this program is not built with Go.
pub(crate) const GO_VERSION: &str = "none";

/// Upstream's version information.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    pub(crate) major: &'static str,
    pub(crate) minor: &'static str,
    pub(crate) emulation_major: String,
    pub(crate) emulation_minor: String,
    pub(crate) min_compatibility_major: String,
    pub(crate) min_compatibility_minor: String,
    pub(crate) git_version: &'static str,
    pub(crate) git_commit: &'static str,
    pub(crate) git_tree_state: &'static str,
    pub(crate) build_date: &'static str,
    pub(crate) go_version: &'static str,
    pub(crate) compiler: &'static str,
    pub(crate) platform: &'static str,
}

impl Version {
    /// The version of this program when it emulates a release.
    pub(crate) fn of(effective: EffectiveVersion) -> Self {
        let (emulation_major, emulation_minor) = effective.emulation_numbers();
        let (min_compatibility_major, min_compatibility_minor) =
            effective.min_compatibility_numbers();
        Self {
            major: MAJOR,
            minor: MINOR,
            emulation_major,
            emulation_minor,
            min_compatibility_major,
            min_compatibility_minor,
            git_version: GIT_VERSION,
            git_commit: option_env!("PINTLE_COMMIT").unwrap_or("unknown"),
            git_tree_state: "clean",
            build_date: "1970-01-01T00:00:00Z",
            go_version: GO_VERSION,
            compiler: "rustc",
            platform: PLATFORM,
        }
    }
}

/// The body of `/version`, as compact JSON.
pub(crate) fn json(effective: EffectiveVersion) -> Vec<u8> {
    serde_json::to_vec(&Version::of(effective)).expect("a struct of texts has a JSON form")
}

/// The platform in Go's terms.
const PLATFORM: &str = match (cfg!(target_os = "macos"), cfg!(target_arch = "aarch64")) {
    (false, false) => "linux/amd64",
    (false, true) => "linux/arm64",
    (true, false) => "darwin/amd64",
    (true, true) => "darwin/arm64",
};
