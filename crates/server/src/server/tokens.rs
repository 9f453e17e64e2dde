//! Prepares token authenticators and the token issuer: reads keys, and generates them if there are
//! none.

use std::path::Path;
use std::sync::Arc;

use pintle_auth::token::{
    AccountTokens, EXTENSION_SECONDS, Issuer, PublicKey, SigningKey, TokenList, public_keys,
};

use pintle_cel::Url;

use crate::authentication::Tokens;
use crate::authentication::external::External;
use crate::backends::Dialers;
use crate::pki::signing_key_pem;
use crate::token_issuer::TokenIssuer;
use crate::{Config, Error, ServiceAccounts};

/// Builds the token authenticators and the issuer.
pub(super) fn prepare(
    config: &Config,
    directory: Option<&Path>,
    dialers: Dialers,
) -> Result<(Tokens, TokenIssuer), Error> {
    let accounts = &config.service_accounts;
    check(accounts)?;
    let key = match &accounts.signing_key_file {
        Some(path) => read(path, SigningKey::from_pem)
            .map_err(|error| error.of("service-account-signing-key-file"))?,
        None => {
            let pem = signing_key_pem(directory)?;
            SigningKey::from_pem(&pem)
                .map_err(|why| wrong(&directory.unwrap_or(Path::new("")).join("sa.key"), &why))?
        }
    };
    let mut keys: Vec<PublicKey> = Vec::new();
    for path in &accounts.key_files {
        let read = read(path, public_keys);
        keys.extend(read.map_err(|error| error.of("service-account-key-file"))?);
    }
    // The server's own tokens are valid, too, unless the flags set both the signing key and the
    // verification keys.
    let both_chosen = accounts.signing_key_file.is_some() && !keys.is_empty();
    if !both_chosen && keys.iter().all(|known| known.id() != key.public().id()) {
        keys.push(key.public().clone());
    }
    let mut issuers = accounts.issuers.clone();
    if issuers.is_empty() {
        issuers.push(ServiceAccounts::DEFAULT_ISSUER.to_owned());
    }
    let issuer = Arc::new(Issuer::new(key, &issuers[0]));
    let mut audiences = accounts.api_audiences.clone();
    if audiences.is_empty() {
        audiences.clone_from(&issuers);
    }
    let list = match &config.token_auth_file {
        Some(path) => read(path, TokenList::parse).map_err(|error| error.of("token-auth-file"))?,
        None => TokenList::default(),
    };
    if let Some(max) = accounts.max_token_expiration.filter(|_| accounts.extend_token_expiration)
        && max.as_secs().cast_signed() < EXTENSION_SECONDS
    {
        tracing::warn!(
            "tokens of pods may live {EXTENSION_SECONDS} seconds (--service-account-extend-token-expiration), \
             longer than the {} seconds of --service-account-max-token-expiration",
            max.as_secs()
        );
    }
    let issuing = TokenIssuer {
        issuer,
        name: issuers[0].clone(),
        max_seconds: accounts.max_token_expiration.map(|d| d.as_secs()),
        extends: accounts.extend_token_expiration,
        jwks_uri: accounts.jwks_uri.clone(),
    };
    let settings = &config.external_tokens;
    let has_external =
        settings.config.is_some() || settings.oidc.is_some() || settings.webhook.is_some();
    let external = has_external
        .then(|| External::new(config, issuers.clone(), audiences.clone(), dialers).map(Arc::new))
        .transpose()?;
    let accounts = AccountTokens::new(keys, issuers, audiences);
    let bootstrap = config.bootstrap_tokens;
    Ok((Tokens { list, accounts, uses: Arc::default(), bootstrap, external }, issuing))
}

/// Checks the texts of the flags, with upstream's conditions
/// (`BuiltInAuthenticationOptions.Validate`).
fn check(accounts: &ServiceAccounts) -> Result<(), Error> {
    let refuse = |flag, reason| Err(Error::Flag { flag, reason });
    for (index, issuer) in accounts.issuers.iter().enumerate() {
        let reason = if issuer.is_empty() {
            "must not be empty; leave the flag out for the default issuer".to_owned()
        } else if issuer.contains(':') && Url::parse(issuer).is_err() {
            format!("{issuer:?} contains a ':' but is not a valid URL")
        } else if accounts.issuers[..index].contains(issuer) {
            format!("{issuer:?} is specified more than once")
        } else {
            continue;
        };
        return refuse("service-account-issuer", reason);
    }
    match accounts.jwks_uri.as_deref().filter(|uri| !uri.is_empty()) {
        Some(uri) if !Url::parse(uri).is_ok_and(|url| url.scheme() == "https") => {
            let reason = format!("{uri:?} is not a URL that begins with https://");
            refuse("service-account-jwks-uri", reason)
        }
        _ => Ok(()),
    }
}

/// Reads and parses a file.
fn read<T>(path: &Path, parse: fn(&str) -> Result<T, pintle_auth::Error>) -> Result<T, Error> {
    parse(&crate::pki::read(path)?).map_err(|why| wrong(path, &why))
}

fn wrong(path: &Path, why: &pintle_auth::Error) -> Error {
    Error::Certificate { path: path.to_owned(), reason: why.to_string() }
}
