//! Checks the certificates of a server without changing them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::authority::{Authority, CLUSTER, FRONT_PROXY, Kind, Pair, Profile};
use super::listener::{ListenerFiles, Serving};
use super::{
    Wanted, admin_profile, front_proxy_client_profile, kubelet_client_profile, serving_profile,
};
use crate::Error;

/// A problem of a certificate.
#[derive(Debug)]
pub struct CertificateProblem {
    /// The certificate's file, or the directory. Empty if the reason names a flag.
    pub path: PathBuf,
    /// The reason, with advice unless the server solves the problem by itself.
    pub reason: String,
    /// Whether the server does not start with this problem. Otherwise the server renews the
    /// certificate, or warns of a CA that expires soon.
    pub is_fatal: bool,
}

/// Checks the CAs and certificates in the directory, and those that flags name. A directory without
/// certificates is no problem, since the server generates them.
pub(crate) fn inspect(wanted: &Wanted, now: SystemTime) -> Vec<CertificateProblem> {
    let mut problems = Vec::new();
    let mut of_flag = |result: Result<(), Error>| {
        if let Err(error) = result {
            problems.push(CertificateProblem {
                path: PathBuf::new(),
                reason: error.to_string(),
                is_fatal: true,
            });
        }
    };
    of_flag(ListenerFiles::read(wanted).map(drop));
    let given = Serving::given(wanted);
    let has_given = matches!(given, Ok(Some(_)));
    of_flag(given.map(drop));
    let Some(directory) = wanted.directory.as_deref().filter(|directory| directory.is_dir()) else {
        return problems;
    };
    let serving = (!has_given).then(|| serving_profile(wanted));
    let of_cluster = [admin_profile(), kubelet_client_profile()].into_iter().chain(serving);
    problems.extend(of_authority(directory, &CLUSTER, of_cluster, now));
    let of_front_proxy = std::iter::once(front_proxy_client_profile());
    problems.extend(of_authority(directory, &FRONT_PROXY, of_front_proxy, now));
    problems
}

/// The problem of a CA that cannot be used; or else the problems of the certificates that it
/// issued, and whether the CA expires soon.
fn of_authority(
    directory: &Path,
    kind: &Kind,
    profiles: impl Iterator<Item = Profile>,
    now: SystemTime,
) -> Vec<CertificateProblem> {
    let authority = match Authority::stored(kind, directory, now) {
        Ok(Some(authority)) => authority,
        Ok(None) => return Vec::new(),
        Err(Error::Certificate { path, reason }) => {
            return vec![CertificateProblem { path, reason, is_fatal: true }];
        }
        Err(error) => {
            let (path, reason) = (directory.to_owned(), error.to_string());
            return vec![CertificateProblem { path, reason, is_fatal: true }];
        }
    };
    let mut problems: Vec<CertificateProblem> = profiles
        .filter_map(|profile| {
            let (path, reason, is_fatal) = match Pair::load(Some(directory), profile.file) {
                Ok(Some(pair)) => {
                    (pair.certificate_path(), authority.unfit(&pair, &profile, now)?, false)
                }
                Ok(None) => return None,
                // The server does not replace a pair that it cannot read.
                Err(error) => (directory.join(profile.file), error.to_string(), true),
            };
            Some(CertificateProblem { path, reason, is_fatal })
        })
        .collect();
    if let Some(reason) = authority.ends_soon(now) {
        let path = directory.join(format!("{}.crt", kind.file()));
        problems.push(CertificateProblem { path, reason, is_fatal: false });
    }
    problems
}
