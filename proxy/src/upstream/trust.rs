//! Which server certificates are trusted: what webpki accepts, and a self-signed certificate that
//! `upstream_ca` names itself.
//!
//! Test servers often have one made by `openssl req -x509`, which is a CA and a server's in one.
//! webpki refuses a CA in a server's place whatever the roots are; other clients accept it when it
//! is the very certificate they were told to trust, and so does Squall.

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

/// webpki's verdict, but for certificates named by the user.
#[derive(Debug)]
pub(super) struct Trust {
    webpki: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Trust {
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

/// Whether webpki refuses a certificate only for being a CA's: it looks at that after the dates.
pub(super) fn is_ca_as_server(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

/// A certificate that is its own issuer, and that no root accounts for: whatever webpki says of it, this is why.
#[derive(Debug, thiserror::Error)]
#[error("it is self-signed")]
pub(super) struct SelfSigned;

impl SelfSigned {
    /// In the place of `error`, where that is so and the certificate is within its dates and for the name.
    fn instead_of(error: CertificateError, certificate: &CertificateDer<'_>) -> CertificateError {
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
        let is_its_own_issuer = || {
            X509Certificate::from_der(certificate)
                .is_ok_and(|(_, x509)| x509.subject() == x509.issuer())
        };
        if is_plain || !is_its_own_issuer() {
            return error;
        }
        E::Other(OtherError(Arc::new(Self)))
    }
}

impl ServerCertVerifier for Trust {
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
                let error = SelfSigned::instead_of(error, end_entity);
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
