//! Encryption of a connection, as libpq's `sslmode` says.

use std::net::TcpStream;
use std::sync::Arc;

use anabranch_engine::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned};

use super::address::{Address, Encryption};

/// Encrypts a connection that the server has agreed to encrypt.
///
/// # Errors
/// `Unavailable` when the certificate does not hold, `Invalid` when roots cannot be read.
pub(super) fn encrypt(socket: TcpStream, address: &Address) -> Result<StreamOwned<ClientConnection, TcpStream>, Error> {
    let unusable = |problem: String| Error::unavailable(format!("the connection cannot be encrypted: {problem}"));
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?;
    let config = match (&address.root, address.encryption) {
        (Some(_), Encryption::Always | Encryption::Verified) => {
            builder.with_root_certificates(roots(address)?).with_no_client_auth()
        }
        (None, Encryption::Verified) => {
            return Err(Error::invalid("no certificate is named that the server's could be checked by")
                .with_hint("Add sslrootcert=FILE to the address."));
        }
        _ => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider))).with_no_client_auth(),
    };
    let name = ServerName::try_from(address.host.clone()).map_err(|error| unusable(error.to_string()))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| unusable(error.to_string()))?;
    let mut stream = StreamOwned::new(connection, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| unusable(error.to_string()))?;
    }
    Ok(stream)
}

fn roots(address: &Address) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &address.root else { return Ok(roots) };
    let unreadable =
        |problem: String| Error::invalid(format!("no certificate can be read in {}: {problem}", path.display()));
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    Ok(roots)
}

/// Takes any certificate: `sslmode=require` without a root hides what is said, and from whom is
/// open.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
