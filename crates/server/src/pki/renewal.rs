//! Renews the server's own certificates before they expire, and reloads the files that flags name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;

use super::authority::{Authority, Pair, Profile};
use super::listener::{ListenerCertificates, ListenerFiles, Serving};
use super::{Credentials, RenewedCredentials};
use crate::Error;

/// The state of renewal.
pub(crate) struct Renewal {
    pub(super) authority: Authority,
    pub(super) front_proxy_authority: Authority,
    /// The directory of the server's own certificates; `None` keeps them in memory.
    pub(super) directory: Option<PathBuf>,
    pub(super) files: ListenerFiles,
    pub(super) serving: Serving,
    pub(super) admin: (Profile, Pair),
    pub(super) kubelet_client: ClientRenewal,
    pub(super) front_proxy_client: ClientRenewal,
}

/// A change that other parts must apply.
pub(crate) enum Change {
    /// The listener's certificates have changed.
    Listener(Box<ListenerCertificates>),
    /// The administrator's certificate has been renewed.
    Admin(Credentials),
}

/// A client certificate of the server.
pub(super) struct ClientRenewal {
    profile: Profile,
    pair: Pair,
    /// The current credentials.
    pub(super) credentials: RenewedCredentials,
}

impl Renewal {
    /// Whether there are files to check.
    pub(crate) fn has_files(&self) -> bool {
        self.serving.is_given() || !self.files.is_empty()
    }

    /// The current certificates of the listener.
    ///
    /// # Errors
    /// Those of [`ListenerFiles::with`].
    pub(super) fn listener(&self) -> Result<ListenerCertificates, Error> {
        self.files.with(self.serving.pair(), &self.authority)
    }

    /// Reloads changed files.
    pub(crate) fn reread(&mut self) -> Result<Option<Change>, Error> {
        let is_changed = self.serving.refresh();
        if !self.files.refresh() && !is_changed {
            return Ok(None);
        }
        Ok(Some(Change::Listener(Box::new(self.listener()?))))
    }

    /// Renews certificates that expire soon, and warns of CAs that do.
    pub(crate) fn renew(&mut self, now: SystemTime) -> Result<Vec<Change>, Error> {
        self.authority.warn(now);
        self.front_proxy_authority.warn(now);
        let mut changes = Vec::new();
        let directory = self.directory.as_deref();
        let (profile, pair) = &mut self.admin;
        if let Some(renewed) = self.authority.renewed(pair, directory, profile, now)? {
            *pair = renewed;
            changes.push(Change::Admin(pair.credentials()));
        }
        self.kubelet_client.renew(&self.authority, directory, now)?;
        self.front_proxy_client.renew(&self.front_proxy_authority, directory, now)?;
        if let Serving::Own { profile, pair } = &mut self.serving
            && let Some(renewed) = self.authority.renewed(pair, directory, profile, now)?
        {
            *pair = renewed;
            changes.push(Change::Listener(Box::new(self.listener()?)));
        }
        Ok(changes)
    }
}

impl ClientRenewal {
    pub(super) fn new(profile: Profile, pair: Pair) -> Self {
        let credentials = Arc::new(ArcSwap::from_pointee(pair.credentials()));
        Self { profile, pair, credentials }
    }

    fn renew(
        &mut self,
        authority: &Authority,
        directory: Option<&Path>,
        now: SystemTime,
    ) -> Result<(), Error> {
        if let Some(renewed) = authority.renewed(&self.pair, directory, &self.profile, now)? {
            self.pair = renewed;
            self.credentials.store(Arc::new(self.pair.credentials()));
        }
        Ok(())
    }
}
