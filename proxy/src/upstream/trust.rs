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

/// A self-signed certificate without a matching root; webpki's reasons are misleading.
#[derive(Debug, thiserror::Error)]
#[error("it is self-signed")]
pub(super) struct SelfSigned;

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, own)| own.subject() == own.issuer())
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
        use CertificateError as E;
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
            Err(Error::InvalidCertificate(E::UnknownIssuer | E::BadSignature | E::Other(_)))
                if is_self_signed(end_entity) =>
            {
                let why = OtherError(Arc::new(SelfSigned));
                Err(Error::InvalidCertificate(E::Other(why)))
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
        self.webpki
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.webpki.root_hint_subjects()
    }
}
