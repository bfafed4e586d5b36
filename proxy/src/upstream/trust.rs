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
use x509_parser::public_key::PublicKey;

/// webpki's verdict, but for certificates named by the user.
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

/// Whether webpki refuses a certificate only for being a CA's: it looks at that after the dates.
pub(super) fn is_ca_as_server(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

/// Bits of the shortest RSA key whose signatures are accepted.
const SHORTEST_RSA: usize = 2048;

/// Why a certificate is not trusted, where webpki's reason misleads.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TrustError {
    /// It is its own issuer, and no root accounts for it.
    #[error("it is self-signed")]
    SelfSigned,
    /// For webpki the signature is wrong.
    #[error(
        "it, or a CA of its chain, has an RSA key of fewer than {SHORTEST_RSA} bits, which is not accepted"
    )]
    ShortKey,
}

impl TrustError {
    /// The flaw in the place of `error`, where there is one and the certificate is within its dates and for the name.
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
    /// The verdict on a signature by the certificate's own key.
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
