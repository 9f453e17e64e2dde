//! The flags about encryption at rest, under kube-apiserver's names.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::EncryptionFile;

#[derive(Args, Debug)]
#[command(next_help_heading = "Encryption at rest")]
pub(super) struct EncryptionFlags {
    /// An EncryptionConfiguration, which says which objects are encrypted where they are stored, and how
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
    /// Read that file again when it changes; what is wrong with it then changes nothing
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
