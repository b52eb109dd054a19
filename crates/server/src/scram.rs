//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's half.
//!
//! The server keeps a verifier, from which the password cannot be had; an exchange shows neither to
//! a listener. A name without a user goes through the same exchange, with a salt that is always
//! the same for that name, so names cannot be found out.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

use crate::error::ServerError;

/// The one mechanism that is offered.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";

const ITERATIONS: u32 = 4096;
const SALT_BYTES: usize = 16;
/// Larger numbers of iterations would keep a client busy for minutes.
const ITERATIONS_MAX: u32 = 1_000_000;

/// What proves a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

/// Bytes that cannot be guessed.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], ServerError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ServerError::new("the system has no random bytes"))?;
    Ok(bytes)
}

fn hmac_of(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

impl Verifier {
    /// The verifier of a password, with a salt of its own.
    pub(crate) fn make(password: &str) -> Result<Verifier, ServerError> {
        Ok(Verifier::with_salt(password, random::<SALT_BYTES>()?.to_vec(), ITERATIONS))
    }

    fn with_salt(password: &str, salt: Vec<u8>, iterations: u32) -> Verifier {
        // As PostgreSQL: a password that cannot be prepared is taken as it is.
        let prepared = stringprep::saslprep(password).map_or_else(|_| password.to_owned(), |text| text.into_owned());
        let mut salted = [0; 32];
        let rounds = NonZeroU32::new(iterations.max(1)).expect("at least 1");
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, prepared.as_bytes(), &mut salted);
        let client_key = hmac_of(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, &client_key).as_ref().to_vec();
        Verifier { iterations, salt, stored_key, server_key: hmac_of(&salted, b"Server Key") }
    }

    /// A verifier that no password has.
    pub(crate) fn of_nobody(name: &str, secret: &[u8; 32]) -> Verifier {
        let salt = hmac_of(secret, name.as_bytes())[..SALT_BYTES].to_vec();
        Verifier { iterations: ITERATIONS, salt, stored_key: vec![0; 32], server_key: vec![0; 32] }
    }

    /// Reads PostgreSQL's form.
    pub(crate) fn parse(text: &str) -> Option<Verifier> {
        let (head, keys) = text.trim().strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let bytes = |text: &str| STANDARD.decode(text).ok();
        let verifier = Verifier {
            iterations: iterations.parse().ok().filter(|n| (1..=ITERATIONS_MAX).contains(n))?,
            salt: bytes(salt)?,
            stored_key: bytes(stored_key)?,
            server_key: bytes(server_key)?,
        };
        (verifier.stored_key.len() == 32 && verifier.server_key.len() == 32).then_some(verifier)
    }

    /// Whether the password is the verifier's.
    pub(crate) fn is_of(&self, password: &str) -> bool {
        let made = Verifier::with_salt(password, self.salt.clone(), self.iterations);
        same(&made.stored_key, &self.stored_key)
    }
}

/// Whether bytes are the same, in a time that does not tell where they differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        write!(f, "SCRAM-SHA-256${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// An exchange after the client's first message.
pub(crate) struct Exchange {
    verifier: Verifier,
    nonce: String,
    /// `n,,` as the client must repeat it.
    header: String,
    /// The messages so far, as they are signed.
    signed: String,
}

impl Exchange {
    /// Reads the client's first message; gives the server's.
    pub(crate) fn begin(verifier: Verifier, first: &str) -> Result<(Exchange, String), ServerError> {
        let malformed = || ServerError::new("malformed SCRAM message");
        let mut parts = first.splitn(3, ',');
        let (flag, identity, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag), Some(identity), Some(bare)) = (flag, identity, bare) else { return Err(malformed()) };
        // (Channel binding is not offered: "y" says that the client would have used it.)
        if flag != "n" && flag != "y" {
            return Err(ServerError::new("SCRAM channel binding was not offered"));
        }
        let client_nonce = bare.split(',').find_map(|part| part.strip_prefix("r=")).ok_or_else(malformed)?;
        let is_printable = |byte: u8| (0x21..=0x7e).contains(&byte);
        if client_nonce.is_empty() || !client_nonce.bytes().all(is_printable) {
            return Err(malformed());
        }
        let nonce = format!("{client_nonce}{}", STANDARD.encode(random::<18>()?));
        let answer = format!("r={nonce},s={},i={}", STANDARD.encode(&verifier.salt), verifier.iterations);
        let signed = format!("{bare},{answer}");
        Ok((Exchange { verifier, nonce, header: format!("{flag},{identity},"), signed }, answer))
    }

    /// Reads the client's last message; gives the server's, or `None` when the password was wrong.
    pub(crate) fn finish(self, last: &str) -> Result<Option<String>, ServerError> {
        let malformed = || ServerError::new("malformed SCRAM message");
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or_else(malformed)?;
        let value = |name: &str| without_proof.split(',').find_map(|part| part.strip_prefix(name));
        let header = value("c=").and_then(|text| STANDARD.decode(text).ok()).ok_or_else(malformed)?;
        if header != self.header.as_bytes() || value("r=") != Some(&self.nonce) {
            return Err(malformed());
        }
        let proof = STANDARD.decode(proof).map_err(|_| malformed())?;
        let signed = format!("{},{without_proof}", self.signed);
        let signature = hmac_of(&self.verifier.stored_key, signed.as_bytes());
        if proof.len() != signature.len() {
            return Err(malformed());
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let stored_key = digest::digest(&digest::SHA256, &client_key);
        if !same(stored_key.as_ref(), &self.verifier.stored_key) {
            return Ok(None);
        }
        Ok(Some(format!("v={}", STANDARD.encode(hmac_of(&self.verifier.server_key, signed.as_bytes())))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_of_the_rfc_is_accepted() {
        // RFC 7677, section 3.
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with_salt("pencil", salt, 4096);
        let server_nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let server_first = format!("r={server_nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let exchange = Exchange {
            verifier,
            nonce: server_nonce.into(),
            header: "n,,".into(),
            signed: format!("n=user,r=rOprNGfwEbeRWgbNEkqO,{server_first}"),
        };
        let last = format!("c=biws,r={server_nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let answer = exchange.finish(&last).unwrap();
        assert_eq!(answer.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    }

    #[test]
    fn a_verifier_is_written_and_read() {
        let verifier = Verifier::make("pässword").unwrap();
        assert_eq!(Verifier::parse(&verifier.to_string()), Some(verifier.clone()));
        assert!(verifier.is_of("pässword") && !verifier.is_of("password"));
        for text in ["", "md5abc", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$4096:AA==$AA==:AA=="] {
            assert_eq!(Verifier::parse(text), None, "{text}");
        }
    }

    #[test]
    fn nobody_has_always_the_same_salt() {
        let secret = [7; 32];
        assert_eq!(Verifier::of_nobody("x", &secret).salt, Verifier::of_nobody("x", &secret).salt);
        assert_ne!(Verifier::of_nobody("x", &secret).salt, Verifier::of_nobody("y", &secret).salt);
    }
}
