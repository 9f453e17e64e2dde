//! Flags about who is let in, and what they may do.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::{Config, Mode};

#[derive(Args, Debug)]
#[command(next_help_heading = "Authentication and authorization")]
pub(super) struct AccessFlags {
    /// Further authorities for client certificates, as PEM: common names are users, organizations groups
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Let requests without credentials in, as system:anonymous
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "true", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    anonymous_auth: bool,
    /// Who says who may do what, in this order: RBAC, AlwaysAllow, AlwaysDeny; Node is accepted and
    /// allows nothing yet. Members of system:masters may always do everything
    #[arg(long, value_name = "MODE,…", default_value = "RBAC")]
    authorization_mode: String,
}

impl AccessFlags {
    /// Puts what the flags say into the configuration.
    pub(super) fn apply(self, config: &mut Config) -> anyhow::Result<()> {
        config.client_ca_file = self.client_ca_file;
        config.anonymous_auth = self.anonymous_auth;
        config.authorization_modes =
            Mode::list(&self.authorization_mode).context("--authorization-mode")?;
        Ok(())
    }
}
