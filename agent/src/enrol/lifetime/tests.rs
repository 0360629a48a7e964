//! When a certificate is renewed.

use super::{Lifetime, serves};
use crate::families::Families;
use jiff::Timestamp;
use std::net::IpAddr;

#[test]
fn renewal_falls_between_seven_and_nine_tenths_of_the_life() {
    let lifetime = Lifetime {
        not_before: Timestamp::from_second(1000).unwrap(),
        not_after: Timestamp::from_second(2000).unwrap(),
        common_name: "system:node:a".into(),
    };
    assert_eq!(lifetime.renew_at(0.0).as_second(), 1700);
    assert_eq!(lifetime.renew_at(1.0).as_second(), 1900);
}

#[test]
fn a_certificate_tells_its_life_and_name() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "system:node:a");
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 1, 11);
    let certificate = params.self_signed(&key).unwrap();
    let lifetime = Lifetime::of(&certificate.pem()).unwrap();
    assert_eq!(lifetime.common_name, "system:node:a");
    assert_eq!(lifetime.renew_at(0.5).to_string(), "2026-01-09T00:00:00Z");
    assert_eq!(Lifetime::of("no certificate"), None);
}

#[test]
fn a_certificate_serves_one_node_at_its_address() {
    let names = ["edge".to_owned(), "192.0.2.7".to_owned()];
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(names).unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let at = |text: &str| -> Families<IpAddr> {
        let words = text.split(' ');
        words.map(|word| word.parse().unwrap()).collect()
    };
    assert!(serves(&pem, "edge", at("192.0.2.7")));
    assert!(!serves(&pem, "edge", at("192.0.2.8")));
    assert!(!serves(&pem, "edge", at("192.0.2.7 fd99::7")));
    assert!(!serves(&pem, "other", at("192.0.2.7")));
    assert!(!serves("no certificate", "edge", at("192.0.2.7")));
}
