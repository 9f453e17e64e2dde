//! Flags about the Kubernetes release that the server emulates.

use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::{Config, EffectiveVersion, FeatureGates};

#[derive(Args, Debug)]
#[command(next_help_heading = "Release")]
pub(super) struct ReleaseFlags {
    /// The Kubernetes release to emulate, 1.33 to 1.36: it determines the served APIs and the
    /// defaults of feature gates
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    emulated_version: Vec<String>,
    /// The oldest release of all servers that use the same store [default: the one before
    /// --emulated-version]
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    min_compatibility_version: Vec<String>,
    /// Also serve resources in versions that later releases introduced, if an earlier beta or
    /// stable version of the resource is served
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    emulation_forward_compatible: bool,
    /// Also serve APIs that later releases introduced, if --runtime-config names them
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    runtime_config_emulation_forward_compatible: bool,
}

impl ReleaseFlags {
    /// The configuration of a server of that release, with the feature gates that are set.
    pub(super) fn config(&self, feature_gates: &[String]) -> anyhow::Result<Config> {
        let effective_version = EffectiveVersion::parse(
            self.emulated_version.iter().map(String::as_str),
            self.min_compatibility_version.iter().map(String::as_str),
        )?;
        let gates = feature_gates.iter().map(String::as_str);
        Ok(Config {
            effective_version,
            emulation_forward_compatible: self.emulation_forward_compatible,
            runtime_config_emulation_forward_compatible: self
                .runtime_config_emulation_forward_compatible,
            feature_gates: FeatureGates::parse_for(effective_version, gates)?,
            ..Config::default()
        })
    }
}
