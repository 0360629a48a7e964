//! From an approved request to a certificate. Pure: time and the serial number are arguments.
//!
//! Of the request only the subject, the alternative names and the key are taken; usages come from
//! `spec.usages`, and no certificate is ever a CA.

use crate::csr;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SerialNumber,
};
use std::time::Duration;

pub(super) const SIGNERS: [&str; 3] = [csr::CLIENT, csr::NODE_CLIENT, csr::NODE_SERVING];

/// Upstream's `--cluster-signing-duration`.
const LIFE_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The API refuses shorter ones.
const LIFE_MIN: Duration = Duration::from_secs(600);
/// For clocks that lag a little behind this one.
const BACKDATE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, thiserror::Error)]
pub(crate) enum IssueError {
    #[error("the CA pair cannot be used")]
    Authority(#[source] rcgen::Error),
    #[error("the request cannot be read")]
    Request(#[from] csr::AskError),
    #[error("signing failed")]
    Sign(#[source] rcgen::Error),
}

pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
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
        _ => client_fault(spec, &asked),
    }
}

fn client_fault(spec: &CertificateSigningRequestSpec, asked: &csr::Asked) -> Option<String> {
    let usages = spec.usages.as_deref().unwrap_or(&[]);
    if !usages.iter().any(|usage| usage == "client auth") {
        return Some("usages must include client auth".to_owned());
    }
    let known = ["client auth", "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !known.contains(&usage.as_str())) {
        return Some(format!(
            "usage {other} is not allowed for a client certificate"
        ));
    }
    // Nobody becomes the admin by a request: upstream's admission refuses it too.
    (asked.organization == "system:masters").then(|| {
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is \
                  not allowed"
            .to_owned()
    })
}

impl Authority {
    pub(super) fn from_pem(certificate: &str, key: &str) -> Result<Self, IssueError> {
        let key = KeyPair::from_pem(key).map_err(IssueError::Authority)?;
        let issuer = Issuer::from_ca_cert_pem(certificate, key).map_err(IssueError::Authority)?;
        Ok(Self { issuer })
    }

    pub(super) fn issue(
        &self,
        spec: &CertificateSigningRequestSpec,
        now: Timestamp,
        serial: [u8; 16],
    ) -> Result<String, IssueError> {
        let asked = csr::read(spec)?;
        let mut request = asked.params;
        let mut params = CertificateParams::default();
        params.distinguished_name = request.params.distinguished_name.clone();
        params
            .subject_alt_names
            .clone_from(&request.params.subject_alt_names);
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(SerialNumber::from(positive(serial)));
        params.key_usages = key_usages(spec);
        params.extended_key_usages = extended_key_usages(spec);
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let since_epoch = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
        params.not_before = epoch + since_epoch.saturating_sub(BACKDATE);
        params.not_after = epoch + since_epoch + life(spec);
        request.params = params;
        let certificate = request.signed_by(&self.issuer).map_err(IssueError::Sign)?;
        Ok(certificate.pem())
    }
}

/// A serial number is a positive integer (RFC 5280, 4.1.2.2).
fn positive(mut serial: [u8; 16]) -> Vec<u8> {
    serial[0] = serial[0] & 0x7f | 0x40;
    serial.to_vec()
}

fn life(spec: &CertificateSigningRequestSpec) -> Duration {
    let asked = spec
        .expiration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    asked
        .map_or(LIFE_MAX, Duration::from_secs)
        .clamp(LIFE_MIN, LIFE_MAX)
}

fn key_usages(spec: &CertificateSigningRequestSpec) -> Vec<KeyUsagePurpose> {
    let usages = spec.usages.iter().flatten();
    usages
        .filter_map(|usage| match usage.as_str() {
            "digital signature" => Some(KeyUsagePurpose::DigitalSignature),
            "key encipherment" => Some(KeyUsagePurpose::KeyEncipherment),
            _ => None,
        })
        .collect()
}

fn extended_key_usages(spec: &CertificateSigningRequestSpec) -> Vec<ExtendedKeyUsagePurpose> {
    let usages = spec.usages.iter().flatten();
    usages
        .filter_map(|usage| match usage.as_str() {
            "client auth" => Some(ExtendedKeyUsagePurpose::ClientAuth),
            "server auth" => Some(ExtendedKeyUsagePurpose::ServerAuth),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
