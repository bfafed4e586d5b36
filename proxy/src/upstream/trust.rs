//! Trusted server certificates: those that webpki accepts, and self-signed ones in `upstream_ca`.
//!
//! Test servers often use a certificate of `openssl req -x509`, which is both a CA and a server
//! certificate. webpki always rejects a CA as a server certificate. Other clients accept it if it
//! is explicitly trusted, and so does Squall.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

/// webpki's verification, except for certificates in `upstream_ca`.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    webpki: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl CertificateVerifier {
    pub(super) fn new(
        webpki: Arc<WebPkiServerVerifier>,
        named: &[CertificateDer<'static>],
    ) -> Self {
        Self {
            webpki,
            named: named.to_vec(),
        }
    }
}

/// Whether webpki rejects a certificate only because it is a CA; webpki checks this after the
/// dates.
pub(super) fn is_ca_as_server(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

/// Bits of the shortest RSA key whose signatures are accepted.
const SHORTEST_RSA: usize = 2048;

/// Why a certificate is not trusted, if webpki's reason is misleading.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TrustError {
    /// It is self-signed, and no root matches.
    #[error("it is self-signed")]
    SelfSigned,
    /// webpki reports an invalid signature instead.
    #[error(
        "it, or a CA of its chain, has an RSA key of fewer than {SHORTEST_RSA} bits, which is not accepted"
    )]
    ShortKey,
}

impl TrustError {
    /// The replacement for `error`, if there is one and the certificate is valid by date and name.
    fn instead_of(
        error: CertificateError,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        roots: &[CertificateDer<'static>],
    ) -> CertificateError {
        use CertificateError as E;
        let is_plain = matches!(
            error,
            E::Expired
                | E::ExpiredContext { .. }
                | E::NotValidYet
                | E::NotValidYetContext { .. }
                | E::NotValidForName
                | E::NotValidForNameContext { .. }
        );
        let Some(own) = parsed(certificate).filter(|_| !is_plain) else {
            return error;
        };
        let chain: Vec<_> = intermediates.iter().filter_map(parsed).collect();
        let issued = |root: &X509Certificate<'_>| {
            let mut chain = chain.iter().chain([&own]);
            chain.any(|one| one.issuer() == root.subject())
        };
        let flaw = if own.subject() == own.issuer() {
            Self::SelfSigned
        } else if error == E::BadSignature
            && (chain.iter().any(has_short_key)
                || roots
                    .iter()
                    .filter_map(parsed)
                    .filter(issued)
                    .any(|root| has_short_key(&root)))
        {
            Self::ShortKey
        } else {
            return error;
        };
        E::Other(OtherError(Arc::new(flaw)))
    }
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed)
}

fn has_short_key(certificate: &X509Certificate<'_>) -> bool {
    let key = certificate.public_key().parsed();
    matches!(key, Ok(PublicKey::RSA(key)) if key.key_size() < SHORTEST_RSA)
}

impl CertificateVerifier {
    /// The result for a signature by the certificate's own key.
    fn of_signature(
        verdict: Result<HandshakeSignatureValid, Error>,
        certificate: &CertificateDer<'_>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match verdict {
            Err(Error::InvalidCertificate(CertificateError::BadSignature))
                if parsed(certificate).is_some_and(|own| has_short_key(&own)) =>
            {
                let flaw = CertificateError::Other(OtherError(Arc::new(TrustError::ShortKey)));
                Err(Error::InvalidCertificate(flaw))
            }
            verdict => verdict,
        }
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            Err(Error::InvalidCertificate(error))
                if is_ca_as_server(&error) && self.named.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(Error::InvalidCertificate(error)) => {
                let error = TrustError::instead_of(error, end_entity, intermediates, &self.named);
                Err(Error::InvalidCertificate(error))
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let webpki = &self.webpki;
        let verdict = webpki.verify_tls12_signature(message, certificate, signature);
        Self::of_signature(verdict, certificate)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let webpki = &self.webpki;
        let verdict = webpki.verify_tls13_signature(message, certificate, signature);
        Self::of_signature(verdict, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.webpki.root_hint_subjects()
    }
}
