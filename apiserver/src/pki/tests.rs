//! The authority is made once and vouches for its own certificates alone.

use super::authority::{Issued, Leaf, Usage};
use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::os::unix::fs::PermissionsExt;

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn names() -> ServerNames {
    ServerNames {
        addresses: vec!["192.0.2.7".parse().unwrap(), "0.0.0.0".parse().unwrap()],
        extra: vec!["gateway.example".into(), "198.51.100.1".into()],
        service_cidr: "10.43.0.0/16".into(),
    }
}

fn client(authority: &Authority, usage: Usage, at: Timestamp) -> CertificateDer<'static> {
    let leaf = Leaf {
        common_name: "somebody",
        organizations: &[],
        names: &[],
        usage,
        life: authority::LEAF_LIFE,
    };
    authority.issue(&leaf, at).unwrap().certificate
}

#[test]
fn the_ca_is_made_once_and_read_ever_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pki");
    let first = Pki::open(&path, names(), now()).unwrap();
    let second = Pki::open(&path, names(), now()).unwrap();
    assert_eq!(first.ca_pem(), second.ca_pem());
    assert_eq!(first.ca_key_pem(), second.ca_key_pem());
    for file in ["ca.crt", "ca.key"] {
        let mode = std::fs::metadata(path.join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let made_before = client(&first.authority, Usage::Client, now());
    assert!(second.clients().vouches(&[made_before], now()));
}

#[test]
fn half_a_pair_and_a_foreign_pair_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("a"), directory.path().join("b"));
    Pki::open(&ours, names(), now()).unwrap();
    Pki::open(&theirs, names(), now()).unwrap();
    std::fs::copy(theirs.join("ca.key"), ours.join("ca.key")).unwrap();
    let error = Pki::open(&ours, names(), now()).unwrap_err().to_string();
    assert!(error.contains("belongs to another key"), "{error}");
    std::fs::remove_file(ours.join("ca.key")).unwrap();
    let error = Pki::open(&ours, names(), now()).unwrap_err().to_string();
    assert!(error.contains("ca.key is not"), "{error}");
    std::fs::write(theirs.join("ca.key"), "nonsense").unwrap();
    let error = Pki::open(&theirs, names(), now()).unwrap_err().to_string();
    assert!(error.contains("usable private key"), "{error}");
}

#[test]
fn the_ca_vouches_for_its_own_client_certificates_in_force() {
    let directory = tempfile::tempdir().unwrap();
    let ours = Pki::open(&directory.path().join("a"), names(), now()).unwrap();
    let theirs = Pki::open(&directory.path().join("b"), names(), now()).unwrap();
    let good = client(&ours.authority, Usage::Client, now());
    assert!(ours.clients().vouches(std::slice::from_ref(&good), now()));
    assert!(!theirs.clients().vouches(std::slice::from_ref(&good), now()));
    let later = "2027-06-02T00:00:00Z".parse().unwrap();
    assert!(!ours.clients().vouches(&[good], later));
    let server = client(&ours.authority, Usage::Server, now());
    assert!(!ours.clients().vouches(&[server], now()));
    assert!(!ours.clients().vouches(&[], now()));
}

#[test]
fn a_clock_that_was_never_set_makes_certificates_that_last() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), names(), Timestamp::UNIX_EPOCH).unwrap();
    let made = client(&pki.authority, Usage::Client, Timestamp::UNIX_EPOCH);
    assert!(pki.clients().vouches(&[made], now()));
}

#[test]
fn the_server_certificate_is_renewed_before_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), names(), now()).unwrap();
    assert!(!pki.renew_if_due(now()).unwrap());
    let due = now() + jiff::SignedDuration::from_hours(24 * 250);
    assert!(pki.renew_if_due(due).unwrap());
    assert!(!pki.renew_if_due(due).unwrap());
}

#[test]
fn the_server_certificate_answers_to_its_names() {
    expect_test::expect![[r#"
        [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "gateway.example",
            "198.51.100.1",
            "127.0.0.1",
            "::1",
            "10.43.0.1",
            "192.0.2.7",
        ]
    "#]]
    .assert_debug_eq(&names().texts());
}

fn issued(authority: &Authority) -> Issued {
    let leaf = Leaf {
        common_name: "somebody",
        organizations: &[],
        names: &[],
        usage: Usage::Client,
        life: authority::LEAF_LIFE,
    };
    authority.issue(&leaf, now()).unwrap()
}

/// A whole handshake in memory; the client shows a certificate, when there is one.
fn handshake(pki: &Pki, shown: Option<Issued>) -> Vec<CertificateDer<'static>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(pki.ca_der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some(issued) => {
            let key = rustls::pki_types::PrivatePkcs8KeyDer::from(issued.key_der);
            let chain = vec![issued.certificate];
            // `with_client_auth_cert` would look at the certificate first.
            let key = ring::sign::any_supported_type(&key.into()).unwrap();
            let shown = SingleCertAndKey::from(CertifiedKey::new(chain, key));
            config.with_client_cert_resolver(Arc::new(shown))
        }
    };
    let name = "kubernetes.default.svc".try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let server_config = Arc::new(pki.server_config().unwrap());
    let mut server = rustls::ServerConnection::new(server_config).unwrap();
    let mut wire = Vec::new();
    while client.is_handshaking() || server.is_handshaking() {
        wire.clear();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    }
    server.peer_certificates().unwrap_or_default().to_vec()
}

#[test]
fn the_handshake_takes_any_client_and_the_ca_judges_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(&directory.path().join("a"), names(), now()).unwrap();
    let other = Pki::open(&directory.path().join("b"), names(), now()).unwrap();
    assert!(handshake(&pki, None).is_empty());
    let own = handshake(&pki, Some(issued(&pki.authority)));
    assert!(pki.clients().vouches(&own, now()));
    let foreign = handshake(&pki, Some(issued(&other.authority)));
    assert_eq!(foreign.len(), 1);
    assert!(!pki.clients().vouches(&foreign, now()));
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let size = u16::try_from(content.len()).unwrap().to_be_bytes();
    match content.len() {
        0..128 => [&[tag, size[1]][..], &content].concat(),
        128..256 => [&[tag, 0x81, size[1]][..], &content].concat(),
        _ => [&[tag, 0x82, size[0], size[1]][..], &content].concat(),
    }
}

/// What `openssl x509 -req` makes without extensions: a certificate of the first version.
fn of_first_version(authority: &Authority, ends: &str) -> Issued {
    const ECDSA_WITH_SHA256: [u8; 12] = [
        0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02,
    ];
    let made = issued(authority);
    let (_, read) = x509_parser::parse_x509_certificate(&made.certificate).unwrap();
    let validity = [&b"200101000000Z"[..], ends.as_bytes()].map(|time| der(0x17, &[time]));
    let signed = der(
        0x30,
        &[
            &der(0x02, &[read.raw_serial()]),
            &ECDSA_WITH_SHA256,
            read.issuer().as_raw(),
            &der(0x30, &[&validity[0], &validity[1]]),
            read.subject().as_raw(),
            read.public_key().raw,
        ],
    );
    let key = rcgen::KeyPair::from_pem(authority.key_pem()).unwrap();
    let signature = rcgen::SigningKey::sign(&key, &signed).unwrap();
    let signature = der(0x03, &[&[0], &signature]);
    let certificate = der(0x30, &[&signed, &ECDSA_WITH_SHA256, &signature]);
    Issued {
        certificate: CertificateDer::from(certificate),
        ..made
    }
}

#[test]
fn certificates_of_the_first_version_are_judged_like_others() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(&directory.path().join("a"), names(), now()).unwrap();
    let other = Pki::open(&directory.path().join("b"), names(), now()).unwrap();
    let judged = |authority: &Authority, ends: &str| {
        let shown = handshake(&pki, Some(of_first_version(authority, ends)));
        assert_eq!(shown.len(), 1);
        pki.clients().vouches(&shown, now())
    };
    assert!(judged(&pki.authority, "350101000000Z"));
    assert!(!judged(&pki.authority, "210101000000Z"));
    assert!(!judged(&other.authority, "350101000000Z"));
    let mut forged = of_first_version(&pki.authority, "350101000000Z");
    let mut bytes = forged.certificate.to_vec();
    let place = bytes
        .windows(8)
        .position(|part| part == b"somebody")
        .unwrap();
    bytes[place..place + 8].copy_from_slice(b"somebigs");
    forged.certificate = CertificateDer::from(bytes);
    assert!(!pki.clients().vouches(&handshake(&pki, Some(forged)), now()));
}

#[test]
fn the_kubeconfig_holds_what_a_client_needs() {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), names(), now()).unwrap();
    let text = pki
        .admin_kubeconfig("https://127.0.0.1:6443", now())
        .unwrap()
        .text;
    let parsed: serde_json::Value = serde_yaml_ng::from_str(&text).unwrap();
    assert_eq!(
        parsed["clusters"][0]["cluster"]["server"],
        "https://127.0.0.1:6443"
    );
    assert_eq!(parsed["current-context"], parsed["contexts"][0]["name"]);
    assert!(parsed["users"][0]["user"]["client-key-data"].is_string());
}

#[test]
fn a_kubeconfig_is_issued_for_anybody_and_names_its_certificate() {
    let directory = tempfile::tempdir().unwrap();
    Pki::open(directory.path(), names(), now()).unwrap();
    let authority = Authority::read(directory.path()).unwrap();
    let order = Order {
        server_url: "https://127.0.0.1:6443",
        user: "jane: \"the\" #1",
        groups: &["dev", "ops"],
        life: Duration::from_secs(3600),
    };
    let made = kubeconfig::issue(&authority, &order, now()).unwrap();
    assert_eq!(made.not_after, now() + jiff::SignedDuration::from_hours(1));
    assert_eq!(made.renew_at, now() + jiff::SignedDuration::from_mins(40));
    let parsed: serde_json::Value = serde_yaml_ng::from_str(&made.text).unwrap();
    assert_eq!(parsed["users"][0]["name"], order.user);
    let pem = parsed["users"][0]["user"]["client-certificate-data"].as_str();
    let pem = STANDARD.decode(pem.unwrap()).unwrap();
    let der = rustls::pki_types::pem::PemObject::from_pem_slice(&pem);
    let der: CertificateDer<'static> = der.unwrap();
    let (_, read) = x509_parser::parse_x509_certificate(&der).unwrap();
    let groups = read.subject().iter_organization();
    let groups: Vec<&str> = groups.map(|one| one.as_str().unwrap()).collect();
    assert_eq!(groups, ["dev", "ops"]);
    assert_eq!(read.raw_serial(), made.serial);
    let clients = tls::ClientCertificates::new(authority.certificate()).unwrap();
    assert!(clients.vouches(std::slice::from_ref(&der), now()));
    assert!(!clients.vouches(&[der], now() + jiff::SignedDuration::from_hours(2)));
}

#[test]
fn a_ca_that_is_not_there_is_not_made_by_reading_it() {
    let directory = tempfile::tempdir().unwrap();
    let error = Authority::read(directory.path()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read "), "{error}");
    assert!(!directory.path().join("ca.crt").exists());
}
