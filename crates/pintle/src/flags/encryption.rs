//! The flags about encryption at rest, under kube-apiserver's names.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::EncryptionFile;

#[derive(Args, Debug)]
#[command(next_help_heading = "Encryption at rest")]
pub(super) struct EncryptionFlags {
    /// The file of an EncryptionConfiguration: the resources whose objects are encrypted in the
    /// store, and the providers that encrypt them
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
    /// Reload that file when it changes. An invalid file is not used: the previous configuration
    /// stays in use
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    encryption_provider_config_automatic_reload: bool,
}

impl EncryptionFlags {
    pub(super) fn file(self) -> anyhow::Result<Option<EncryptionFile>> {
        let reloaded = self.encryption_provider_config_automatic_reload;
        if self.encryption_provider_config.is_none() && reloaded {
            bail!(
                "--encryption-provider-config-automatic-reload must be set with \
                 --encryption-provider-config"
            );
        }
        Ok(self.encryption_provider_config.map(|path| EncryptionFile { path, reloaded }))
    }
}
