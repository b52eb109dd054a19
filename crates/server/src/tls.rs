//! Certificates and keys.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::Tls;
use crate::error::ServerError;

/// What an encrypted connection is made with.
pub(crate) fn load(tls: &Tls) -> Result<Arc<ServerConfig>, ServerError> {
    let chain = certificates(&tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| ServerError::new(format!("no private key can be read in {}: {error}", tls.key.display())))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ServerError::new(format!("TLS cannot be used: {error}")))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| {
            ServerError::new(format!(
                "the certificate in {} and the key in {} cannot be used: {error}",
                tls.certificate.display(),
                tls.key.display()
            ))
        })?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let unreadable = |problem: String| {
        ServerError::new(format!("no certificate can be read in {}: {problem}", path.display()))
            .with_hint("It is a file in PEM: -----BEGIN CERTIFICATE----- ..")
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?.collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(unreadable("there is none".into())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
