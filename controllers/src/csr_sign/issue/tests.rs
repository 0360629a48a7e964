//! A certificate says what was asked for and no more.

use super::*;
use crate::csr::tests::request;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    Authority::from_pem(&certificate, &key.serialize_pem()).unwrap()
}

#[test]
fn a_certificate_says_what_was_asked_and_no_more() {
    let usages = ["digital signature", "client auth"];
    let mut spec = request(
        "system:node:a",
        "system:nodes",
        &[],
        csr::NODE_CLIENT,
        &usages,
    );
    spec.expiration_seconds = Some(3600);
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let pem = authority().issue(&spec, now, [0xff; 16]).unwrap();
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(
        certificate.subject().to_string(),
        "CN=system:node:a, O=system:nodes"
    );
    let seconds = now.as_second();
    assert_eq!(certificate.validity().not_before.timestamp(), seconds - 300);
    assert_eq!(certificate.validity().not_after.timestamp(), seconds + 3600);
    assert!(!certificate.is_ca());
    let extended = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(extended.client_auth && !extended.server_auth);
    assert_eq!(certificate.raw_serial()[0], 0x7f);
}

#[test]
fn a_client_request_cannot_make_an_admin() {
    let asks = |organization, usages: &[&str]| {
        fault(&request("jane", organization, &[], csr::CLIENT, usages))
    };
    assert_eq!(asks("developers", &["client auth"]), None);
    assert!(asks("system:masters", &["client auth"]).is_some());
    assert!(asks("developers", &["server auth", "client auth"]).is_some());
    assert!(asks("developers", &["digital signature"]).is_some());
}

#[test]
fn lives_are_bounded() {
    let with = |seconds| CertificateSigningRequestSpec {
        expiration_seconds: seconds,
        ..CertificateSigningRequestSpec::default()
    };
    assert_eq!(life(&with(None)), LIFE_MAX);
    assert_eq!(life(&with(Some(1))), LIFE_MIN);
    assert_eq!(life(&with(Some(i32::MAX))), LIFE_MAX);
}
