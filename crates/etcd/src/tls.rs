//! TLS to etcd: trusted authorities and the client's certificate.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::Error;

/// The TLS settings of `https` endpoints. All parts are PEM.
#[derive(Clone, Default)]
pub struct Tls {
    /// The authorities of the members' certificates; `None` for the system's.
    pub authorities: Option<Vec<u8>>,
    /// The client's certificate and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Does not show the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Makes the TLS configuration of connections, with HTTP/2 as their protocol.
pub(crate) fn config(tls: &Tls) -> Result<Arc<ClientConfig>, Error> {
    let wrong = |what: &str, why: &dyn std::fmt::Display| {
        Error::Configuration(format!("{what} for etcd cannot be used: {why}"))
    };
    let mut roots = RootCertStore::empty();
    match &tls.authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|why| wrong("the authorities", &why))?;
                roots.add(certificate).map_err(|why| wrong("the authorities", &why))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| wrong("TLS", &why))?
        .with_root_certificates(roots);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
            let chain = chain.map_err(|why| wrong("the certificate", &why))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|why| wrong("the key", &why))?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|why| wrong("the certificate", &why))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}
