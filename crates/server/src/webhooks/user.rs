//! The credentials of this server for a webhook: a user of a kubeconfig.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderValue;
use parking_lot::Mutex;
use pintle_value::Value;
use rustls::ClientConfig;

use crate::Error;
use crate::pki::{Credentials, Followed};
use crate::trust::{self, Identity};

/// The most cached TLS settings of a user, each with its resumable sessions.
const SETTINGS_MAX: usize = 256;
/// The interval at which the files of a client certificate are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A user. Its client certificate is reloaded when its files change.
pub(super) struct User {
    credential: Credential,
    identity: Option<Mutex<RenewedIdentity>>,
    /// TLS settings with the current certificate, by the PEM of the trusted CAs; `None` disables
    /// verification.
    settings: Mutex<HashMap<Option<Vec<u8>>, Arc<ClientConfig>>>,
}

/// The client certificate and its key.
struct RenewedIdentity {
    followed: Followed<Arc<Identity>>,
    looked_at: Instant,
}

/// The value of `Authorization`.
enum Credential {
    None,
    Header(HeaderValue),
    /// A token file, read for each request.
    TokenFile(PathBuf),
}

impl User {
    /// Parses a user's entry; paths are relative to `folder`.
    ///
    /// # Errors
    /// The error of the entry or of a file that it names.
    pub(super) fn read(user: &Value, folder: &Path) -> Result<Self, String> {
        refuse(user, &["exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra"])?;
        Ok(Self {
            credential: credential(user, folder)?,
            identity: identity(user, folder)?.map(Mutex::new),
            settings: Mutex::default(),
        })
    }

    /// A user without credentials.
    pub(super) fn anonymous() -> Self {
        Self { credential: Credential::None, identity: None, settings: Mutex::default() }
    }

    /// The value of `Authorization`, if the user has one.
    pub(super) fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        match &self.credential {
            Credential::None => Ok(None),
            Credential::Header(header) => Ok(Some(header.clone())),
            Credential::TokenFile(path) => {
                let token = fs::read_to_string(path);
                let token = token.map_err(|why| format!("{}: {why}", path.display()))?;
                secret("Bearer", token.trim()).map(Some)
            }
        }
    }

    /// TLS settings that trust CAs in PEM, the system's if empty, or any certificate if `None`.
    pub(super) fn tls(&self, authorities: Option<&[u8]>) -> Result<Arc<ClientConfig>, String> {
        let identity = self.identity.as_ref().map(|identity| self.refreshed(identity));
        let key = authorities.map(<[u8]>::to_vec);
        let mut settings = self.settings.lock();
        if let Some(config) = settings.get(&key) {
            return Ok(config.clone());
        }
        let config = Arc::new(match authorities {
            Some(pem) => trust::bundle(pem, identity.as_deref())?,
            None => trust::anyone(identity.as_deref())?,
        });
        if settings.len() >= SETTINGS_MAX {
            settings.clear();
        }
        settings.insert(key, config.clone());
        Ok(config)
    }

    /// The current certificate. If it has changed, settings with the previous one are dropped, and
    /// so are their connections.
    fn refreshed(&self, identity: &Mutex<RenewedIdentity>) -> Arc<Identity> {
        let RenewedIdentity { followed, looked_at } = &mut *identity.lock();
        if looked_at.elapsed() >= CHECK_INTERVAL {
            *looked_at = Instant::now();
            if followed.refresh() {
                self.settings.lock().clear();
            }
        }
        followed.value().clone()
    }
}

fn identity(user: &Value, folder: &Path) -> Result<Option<RenewedIdentity>, String> {
    const NAMES: [&str; 2] = ["client-certificate", "client-key"];
    let read = |user: &Value, folder: &Path| {
        let [certificate, key] = NAMES.map(|name| data(user, name, folder));
        match (certificate?, key?) {
            (Some(certificate_pem), Some(key_pem)) => {
                let identity = Identity::read(&Credentials { certificate_pem, key_pem });
                let identity = identity.map(Arc::new).map(Some);
                identity.map_err(|why| format!("client-certificate and client-key: {why}"))
            }
            (None, None) => Ok(None),
            _ => Err("client-certificate and client-key belong together".to_owned()),
        }
    };
    if read(user, folder)?.is_none() {
        return Ok(None);
    }
    let files = NAMES.iter().filter_map(|name| file(user, name, folder)).collect();
    let (user, folder) = (user.clone(), folder.to_owned());
    let followed = Followed::new(files, move || {
        let identity = read(&user, &folder).map_err(Error::Tls)?;
        identity.ok_or_else(|| Error::Tls("there is no client-certificate".to_owned()))
    });
    let followed = followed.map_err(|why| why.to_string())?;
    Ok(Some(RenewedIdentity { followed, looked_at: Instant::now() }))
}

/// The file of a member's PEM, unless the kubeconfig has the PEM inline.
fn file(value: &Value, name: &str, folder: &Path) -> Option<PathBuf> {
    let is_inline = !text(value, &format!("{name}-data")).is_empty();
    Some(text(value, name))
        .filter(|path| !is_inline && !path.is_empty())
        .map(|path| folder.join(path))
}

/// The PEM of a member, inline (`NAME-data`) or from a file; `None` if there is neither.
///
/// # Errors
/// The data or the file cannot be read.
pub(super) fn data(value: &Value, name: &str, folder: &Path) -> Result<Option<String>, String> {
    let inline = text(value, &format!("{name}-data"));
    match file(value, name, folder) {
        Some(path) => {
            let read = fs::read_to_string(&path);
            read.map(Some).map_err(|why| format!("{name} {}: {why}", path.display()))
        }
        None if inline.is_empty() => Ok(None),
        None => {
            let bytes = STANDARD.decode(inline).map_err(|why| format!("{name}-data: {why}"))?;
            String::from_utf8(bytes).map(Some).map_err(|why| format!("{name}-data: {why}"))
        }
    }
}

fn credential(user: &Value, folder: &Path) -> Result<Credential, String> {
    let (token, file) = (text(user, "token"), text(user, "tokenFile"));
    let (name, password) = (text(user, "username"), text(user, "password"));
    if !file.is_empty() {
        let path = folder.join(file);
        return match fs::read(&path) {
            Ok(_) => Ok(Credential::TokenFile(path)),
            Err(why) => Err(format!("tokenFile {}: {why}", path.display())),
        };
    }
    if !token.is_empty() {
        return secret("Bearer", token).map(Credential::Header);
    }
    if !name.is_empty() {
        let pair = STANDARD.encode(format!("{name}:{password}"));
        return secret("Basic", &pair).map(Credential::Header);
    }
    Ok(Credential::None)
}

fn secret(scheme: &str, text: &str) -> Result<HeaderValue, String> {
    let header = HeaderValue::from_str(&format!("{scheme} {text}"));
    let mut header = header.map_err(|_| "the token cannot stand in a header".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

/// Refuses unimplemented members, which would change trust or identity.
pub(super) fn refuse(value: &Value, members: &[&str]) -> Result<(), String> {
    match members.iter().find(|member| value.get(member).is_some()) {
        Some(member) => Err(format!("{member} is not supported")),
        None => Ok(()),
    }
}

/// A member that is a text; empty if it is missing.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.str_at(&[member]).unwrap_or_default()
}
