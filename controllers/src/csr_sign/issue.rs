//! From an approved request to a certificate. Pure: time and randomness are arguments.
//!
//! Of the request only the subject, the alternative names and the key are taken; usages come from
//! `spec.usages`, and no certificate is ever a CA. Source of the rules: upstream's permissive
//! signing policy.

use crate::csr::{self, Asked};
use coracle_api::{der, serial_number};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SerialNumber, SigningKey,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::time::Duration;

pub(super) const SIGNERS: [&str; 4] = [
    csr::CLIENT,
    csr::NODE_CLIENT,
    csr::NODE_SERVING,
    csr::LEGACY,
];

/// Upstream's `--cluster-signing-duration`.
const LIFE_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The API refuses shorter ones.
const LIFE_MIN: Duration = Duration::from_secs(600);
/// For clocks that lag a little behind this one.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// Of a shorter life the backdating is not taken off.
const SHORT: Duration = Duration::from_secs(8 * 60 * 60);

#[derive(Debug, thiserror::Error)]
pub(crate) enum IssueError {
    #[error("the CA pair cannot be used")]
    Authority(#[source] rcgen::Error),
    #[error("the CA certificate cannot be read")]
    Certificate,
    #[error("the request cannot be read")]
    Request(#[from] csr::AskError),
    #[error("signing failed")]
    Sign(#[source] rcgen::Error),
    #[error("refusing to sign a certificate that expired in the past: the CA has ended")]
    Ended,
    #[error("unrecognized usage values: [{0:?}]")]
    Usage(String),
}

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    ends: Duration,
}

/// Why the signer does not take the request; `None` when it does.
pub(super) fn fault(spec: &CertificateSigningRequestSpec) -> Option<String> {
    let asked = match csr::read(spec) {
        Ok(asked) => asked,
        Err(error) => return Some(error.to_string()),
    };
    match spec.signer_name.as_str() {
        csr::NODE_CLIENT => csr::node_client_fault(spec, &asked),
        csr::NODE_SERVING => csr::node_serving_fault(spec, &asked),
        csr::CLIENT => client_fault(spec, &asked),
        _ => None,
    }
}

fn client_fault(spec: &CertificateSigningRequestSpec, asked: &Asked) -> Option<String> {
    let usages = spec.usages.as_deref().unwrap_or(&[]);
    let known = ["client auth", "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !known.contains(&usage.as_str())) {
        return Some(format!("invalid usage for client certificate: {other}"));
    }
    if !usages.iter().any(|usage| usage == "client auth") {
        return Some("missing required usage for client certificate: client auth".to_owned());
    }
    // Nobody becomes the admin by a request: admission refuses it too.
    let is_admin = asked
        .organizations
        .iter()
        .any(|one| one == "system:masters");
    is_admin.then(|| {
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
            .to_owned()
    })
}

impl Authority {
    pub(super) fn from_pem(certificate: &str, key: &str) -> Result<Self, IssueError> {
        let key = KeyPair::from_pem(key).map_err(IssueError::Authority)?;
        let issuer = Issuer::from_ca_cert_pem(certificate, key).map_err(IssueError::Authority)?;
        let read = CertificateDer::from_pem_slice(certificate.as_bytes());
        let read = read.map_err(|_| IssueError::Certificate)?;
        let (_, read) =
            x509_parser::parse_x509_certificate(&read).map_err(|_| IssueError::Certificate)?;
        let ends = u64::try_from(read.validity().not_after.timestamp()).unwrap_or(0);
        Ok(Self {
            issuer,
            ends: Duration::from_secs(ends),
        })
    }

    pub(super) fn issue(
        &self,
        spec: &CertificateSigningRequestSpec,
        now: Timestamp,
        random: [u8; serial_number::RANDOM_BYTES],
    ) -> Result<String, IssueError> {
        let asked = csr::read(spec)?;
        let mut params = CertificateParams::default();
        // Stands in for the subject, which takes its place below.
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "-");
        params.subject_alt_names = asked.alternative_names()?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        let serial = serial_number::new(now.as_second(), random);
        params.serial_number = Some(SerialNumber::from(serial.to_vec()));
        (params.key_usages, params.extended_key_usages) = usages(spec)?;
        let (begins, ends) = self.validity(spec, now)?;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + begins;
        params.not_after = epoch + ends;
        let made = params.signed_by(&asked.key, &self.issuer);
        let made = made.map_err(IssueError::Sign)?;
        let signed = der::with_subject(made.der(), &asked.subject);
        let signed = signed.expect("what rcgen made has the form of a certificate");
        let signature = self.issuer.key().sign(&signed).map_err(IssueError::Sign)?;
        let certificate = der::signed(&signed, made.der(), &signature);
        let certificate = certificate.expect("what rcgen made has the form of a certificate");
        Ok(der::certificate_pem(&certificate))
    }

    /// Begin and end, since the epoch. Never longer than the CA.
    fn validity(
        &self,
        spec: &CertificateSigningRequestSpec,
        now: Timestamp,
    ) -> Result<(Duration, Duration), IssueError> {
        let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
        if now >= self.ends {
            return Err(IssueError::Ended);
        }
        let life = life(spec);
        // Under a clock that is not set a certificate begins at the epoch, and lives from here on.
        let floor = Duration::from_secs(serial_number::CLOCK_FLOOR_SECONDS.into());
        let (begins, ends) = match now.checked_sub(floor) {
            None => (Duration::ZERO, floor + life),
            Some(_) if life < SHORT => (now - BACKDATE, now + life),
            Some(_) => (now - BACKDATE, now + life - BACKDATE),
        };
        Ok((begins, ends.min(self.ends)))
    }
}

fn life(spec: &CertificateSigningRequestSpec) -> Duration {
    let asked = spec
        .expiration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    asked
        .map_or(LIFE_MAX, Duration::from_secs)
        .clamp(LIFE_MIN, LIFE_MAX)
}

type Usages = (Vec<KeyUsagePurpose>, Vec<ExtendedKeyUsagePurpose>);

fn usages(spec: &CertificateSigningRequestSpec) -> Result<Usages, IssueError> {
    let (mut plain, mut extended) = Usages::default();
    for usage in spec.usages.iter().flatten() {
        match (key_usage(usage), extended_key_usage(usage)) {
            (Some(purpose), _) if !plain.contains(&purpose) => plain.push(purpose),
            (_, Some(purpose)) if !extended.contains(&purpose) => extended.push(purpose),
            (None, None) => return Err(IssueError::Usage(usage.clone())),
            _ => {}
        }
    }
    Ok((plain, extended))
}

fn key_usage(usage: &str) -> Option<KeyUsagePurpose> {
    Some(match usage {
        "signing" | "digital signature" => KeyUsagePurpose::DigitalSignature,
        "content commitment" => KeyUsagePurpose::ContentCommitment,
        "key encipherment" => KeyUsagePurpose::KeyEncipherment,
        "key agreement" => KeyUsagePurpose::KeyAgreement,
        "data encipherment" => KeyUsagePurpose::DataEncipherment,
        "cert sign" => KeyUsagePurpose::KeyCertSign,
        "crl sign" => KeyUsagePurpose::CrlSign,
        "encipher only" => KeyUsagePurpose::EncipherOnly,
        "decipher only" => KeyUsagePurpose::DecipherOnly,
        _ => return None,
    })
}

fn extended_key_usage(usage: &str) -> Option<ExtendedKeyUsagePurpose> {
    // The purposes of RFC 5280 and RFC 4945, and Microsoft's and Netscape's own.
    let other = |identifier: &[u64]| Some(ExtendedKeyUsagePurpose::Other(identifier.to_vec()));
    Some(match usage {
        "any" => ExtendedKeyUsagePurpose::Any,
        "server auth" => ExtendedKeyUsagePurpose::ServerAuth,
        "client auth" => ExtendedKeyUsagePurpose::ClientAuth,
        "code signing" => ExtendedKeyUsagePurpose::CodeSigning,
        "email protection" | "s/mime" => ExtendedKeyUsagePurpose::EmailProtection,
        "timestamping" => ExtendedKeyUsagePurpose::TimeStamping,
        "ocsp signing" => ExtendedKeyUsagePurpose::OcspSigning,
        "ipsec end system" => return other(&[1, 3, 6, 1, 5, 5, 7, 3, 5]),
        "ipsec tunnel" => return other(&[1, 3, 6, 1, 5, 5, 7, 3, 6]),
        "ipsec user" => return other(&[1, 3, 6, 1, 5, 5, 7, 3, 7]),
        "microsoft sgc" => return other(&[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
        "netscape sgc" => return other(&[2, 16, 840, 1, 113_730, 4, 1]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
