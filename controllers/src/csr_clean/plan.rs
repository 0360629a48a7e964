//! Which certificate requests are over. The periods are upstream's. Pure.

use crate::csr;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

const DECIDED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// Why a request may go; `None` while it stays.
pub(super) fn why_over(
    request: &CertificateSigningRequest,
    now: Timestamp,
) -> Option<&'static str> {
    let is_older = |at: Option<&Time>, age: SignedDuration| {
        at.is_some_and(|at| now.duration_since(at.0) > age)
    };
    let status = request.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let conditions = conditions.unwrap_or(&[]);
    let has_old = |kind: &str, age| {
        let mut own = conditions.iter().filter(|one| one.type_ == kind);
        own.any(|one| is_older(one.last_update_time.as_ref(), age))
    };
    let is_issued = csr::has_certificate(request);
    let rules = [
        (is_issued && has_old("Approved", DECIDED), "issued"),
        (has_old("Denied", DECIDED), "denied"),
        (has_old("Failed", DECIDED), "failed"),
        (
            conditions.is_empty()
                && is_older(request.metadata.creation_timestamp.as_ref(), PENDING),
            "never decided about",
        ),
        (
            csr::has_condition(request, "Approved") && has_ended(request, now),
            "its certificate has ended",
        ),
        (
            !is_issued && has_old("Approved", PENDING),
            "approved and never issued",
        ),
    ];
    let found = rules.into_iter().find(|(is_over, _)| *is_over);
    found.map(|(_, why)| why)
}

fn has_ended(request: &CertificateSigningRequest, now: Timestamp) -> bool {
    let ends = || {
        let pem = &request.status.as_ref()?.certificate.as_ref()?.0;
        let der = CertificateDer::from_pem_slice(pem).ok()?;
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
        Some(certificate.validity().not_after.timestamp())
    };
    ends().is_some_and(|ends| ends < now.as_second())
}

#[cfg(test)]
mod tests;
