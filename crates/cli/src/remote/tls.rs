//! Encryption of a connection, as libpq's `sslmode` says.

use std::net::TcpStream;
use std::sync::Arc;

use anabranch_engine::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};

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
            let known = KnownServer::of(roots(address)?, &provider).map_err(|error| unusable(error.to_string()))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(known)).with_no_client_auth()
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

fn roots(address: &Address) -> Result<Vec<CertificateDer<'static>>, Error> {
    let Some(path) = &address.root else { return Ok(vec![]) };
    let unreadable =
        |problem: String| Error::invalid(format!("no certificate can be read in {}: {problem}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
    certificates.collect::<Result<_, _>>().map_err(|error| unreadable(error.to_string()))
}

/// Takes certificates that a root has signed, and the roots themselves: servers often have one that
/// is its own authority, as `openssl req -x509` makes it.
#[derive(Debug)]
struct KnownServer {
    signed: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
}

impl KnownServer {
    fn of(roots: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<KnownServer, rustls::Error> {
        let mut store = RootCertStore::empty();
        roots.iter().try_for_each(|root| store.add(root.clone()))?;
        let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider)).build();
        Ok(KnownServer { signed: signed.map_err(|error| rustls::Error::General(error.to_string()))?, roots })
    }
}

/// Whether a certificate holds but for being an authority's: that is looked at behind its dates.
/// (The library tells it by name alone.)
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    other.to_string().contains("CaUsedAsEndEntity")
}

impl ServerCertVerifier for KnownServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if is_authority(&error) && self.roots.iter().any(|root| root == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
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
