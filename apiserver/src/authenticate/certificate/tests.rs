//! What a certificate says beside its common name, and for how long a refusal holds.

use super::*;
use crate::pki::Pki;
use crate::pki::authority::Authority;
use crate::pki::names::ServerNames;
use crate::pki::revoked::{KEY, NAME, NAMESPACE};
use crate::view::tests::Objects;
use coracle_api::der;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SerialNumber};
use serde_json::json;
use x509_parser::prelude::FromDer;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The CA, and a certificate of it for Jane for the year from July 2026.
fn site(serial: &[u8]) -> (ClientCertificates, PeerCertificate) {
    let directory = tempfile::tempdir().unwrap();
    let now = at("2026-06-01T00:00:00Z");
    let pki = Pki::open(directory.path(), ServerNames::default(), now).unwrap();
    let ca = Authority::open(directory.path(), now).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "jane");
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    params.distinguished_name.push(uid, "u-1");
    params.serial_number = Some(SerialNumber::from(serial.to_vec()));
    params.not_before = rcgen::date_time_ymd(2026, 7, 1);
    params.not_after = rcgen::date_time_ymd(2027, 7, 1);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let signer = KeyPair::from_pem(ca.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_der(ca.certificate(), signer).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let peer = PeerCertificate::new(&[certificate.der().clone()]).unwrap();
    (pki.clients().clone(), peer)
}

#[test]
fn a_refusal_ends_with_the_time_that_it_was_for() {
    let (clients, peer) = site(&[7]);
    let (revocations, view) = (Revocations::default(), Objects::new([]));
    let ask = |time: &str| peer.user(&clients, &revocations, view.as_ref(), at(time));
    let early = ask("2026-06-30T00:00:00Z");
    assert_eq!(early, Err(CertificateError::NotVouchedFor));
    let user = ask("2026-07-02T00:00:00Z").unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "u-1"));
    let late = ask("2027-07-02T00:00:00Z");
    assert_eq!(late, Err(CertificateError::NotInForce("jane".to_owned())));
}

/// Made to be slow to verify, a chain would cost that with each request of its connection.
#[test]
fn a_refusal_is_not_looked_into_again_at_once() {
    let ((clients, peer), (others, _)) = (site(&[7]), site(&[7]));
    let (revocations, view) = (Revocations::default(), Objects::new([]));
    let ask = |clients: &ClientCertificates, time: &str| {
        let user = peer.user(clients, &revocations, view.as_ref(), at(time));
        user.map(|user| user.name)
    };
    let refused = Err(CertificateError::NotVouchedFor);
    assert_eq!(ask(&others, "2026-07-02T00:00:00Z"), refused);
    assert_eq!(ask(&clients, "2026-07-02T00:00:09Z"), refused);
    assert_eq!(ask(&clients, "2026-07-02T00:00:10Z"), Ok("jane".to_owned()));
}

#[test]
fn a_number_with_a_high_first_bit_is_taken_back_as_tools_show_it() {
    let (clients, peer) = site(&[0xf1, 0xaa]);
    let list = json!({ "certificates": [{ "serial": "F1AA" }] });
    let map = json!({
        "metadata": { "namespace": NAMESPACE, "name": NAME },
        "data": { KEY: list.to_string() },
    });
    let (revocations, view) = (Revocations::default(), Objects::new([("configmaps", map)]));
    let now = at("2026-07-02T00:00:00Z");
    let refused = peer.user(&clients, &revocations, view.as_ref(), now);
    assert_eq!(refused, Err(CertificateError::Revoked("jane".to_owned())));
}

#[test]
fn a_subject_has_one_uid_or_none() {
    // 1.3.6.1.4.1.57683.2, encoded.
    const UID: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];
    let read = |uids: &[(u8, &[u8])]| {
        let attribute = |(tag, text): &(u8, &[u8])| {
            let pair = [
                der::element(der::OBJECT_IDENTIFIER, UID),
                der::element(*tag, text),
            ];
            der::element(der::SET, &der::element(der::SEQUENCE, &pair.concat()))
        };
        let name: Vec<u8> = uids.iter().flat_map(attribute).collect();
        let name = der::element(der::SEQUENCE, &name);
        let (_, name) = X509Name::from_der(&name).unwrap();
        uid(&name).map_err(|error| error.to_string())
    };
    let text = der::UTF8_STRING;
    assert_eq!(read(&[]), Ok(String::new()));
    assert_eq!(read(&[(text, b"u-1")]), Ok("u-1".to_owned()));
    let refused = |uids: &[(u8, &[u8])]| read(uids).unwrap_err();
    assert_eq!(refused(&[(text, b"")]), "UID cannot be an empty string");
    assert_eq!(
        refused(&[(text, b"a"), (text, b"b")]),
        "expected 1 UID, but found multiple: [a b]"
    );
    assert_eq!(
        refused(&[(der::INTEGER, &[1])]),
        "unable to parse UID into a string"
    );
}
