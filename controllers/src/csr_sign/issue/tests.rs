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
    let pem = authority().issue(&spec, now, [0xff; 10]).unwrap();
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
    let serial = certificate.raw_serial();
    assert_eq!(serial_number::issued_at(serial), Some(seconds));
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

#[test]
fn a_certificate_never_outlives_the_authority_and_a_clock_may_not_be_set() {
    let usages = ["digital signature", "client auth"];
    let spec = request("jane", "dev", &[], csr::CLIENT, &usages);
    let authority = Authority {
        ends: Duration::from_secs(1_900_000_000),
        ..authority()
    };
    let validity = |seconds: i64| {
        let now = Timestamp::from_second(seconds).unwrap();
        let (begins, ends) = authority.validity(&spec, now).ok()?;
        Some((begins.as_secs(), ends.as_secs()))
    };
    let year = LIFE_MAX.as_secs();
    let now = 1_800_000_000;
    assert_eq!(validity(1_800_000_000), Some((now - 300, now + year - 300)));
    assert_eq!(
        validity(1_890_000_000),
        Some((1_890_000_000 - 300, 1_900_000_000))
    );
    assert_eq!(validity(1_900_000_000), None);
    assert_eq!(
        validity(60),
        Some((0, u64::from(serial_number::CLOCK_FLOOR_SECONDS) + year))
    );
}

#[test]
fn every_organization_and_name_is_in_the_certificate() {
    let spec = CertificateSigningRequestSpec {
        request: k8s_openapi::ByteString(include_bytes!("../../csr/tests/one-set.csr").to_vec()),
        usages: Some(vec!["client auth".to_owned(), "ipsec user".to_owned()]),
        ..CertificateSigningRequestSpec::default()
    };
    let authority = authority();
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let pem = authority.issue(&spec, now, [1; 10]).unwrap();
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let organizations = certificate.subject().iter_organization();
    let organizations: Vec<&str> = organizations.map(|one| one.as_str().unwrap()).collect();
    assert_eq!(organizations, ["dev", "ops"]);
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names.len(), 2);
    let info = rcgen::PublicKeyData::subject_public_key_info(authority.issuer.key());
    let (_, key) = x509_parser::prelude::SubjectPublicKeyInfo::from_der(&info).unwrap();
    certificate.verify_signature(Some(&key)).unwrap();
}

#[test]
fn usages_are_all_known_or_refused() {
    let with = |usage: &str| CertificateSigningRequestSpec {
        usages: Some(vec![usage.to_owned()]),
        ..CertificateSigningRequestSpec::default()
    };
    assert!(usages(&with("netscape sgc")).is_ok());
    let error = usages(&with("flying")).unwrap_err().to_string();
    assert_eq!(error, "unrecognized usage values: [\"flying\"]");
    let faults = |signer, usage| fault(&request("jane", "dev", &[], signer, &[usage]));
    assert_eq!(
        faults(csr::CLIENT, "server auth").as_deref(),
        Some("invalid usage for client certificate: server auth")
    );
    assert_eq!(
        faults(csr::CLIENT, "digital signature").as_deref(),
        Some("missing required usage for client certificate: client auth")
    );
    assert_eq!(faults(csr::LEGACY, "server auth"), None);
}
