//! What a node may ask of the authority.

use super::*;
use k8s_openapi::ByteString;
use rcgen::{CertificateParams, DnType, KeyPair};

/// A request for `CN/O/dns,dns` with usages.
pub(crate) fn request(
    common_name: &str,
    organization: &str,
    names: &[&str],
    signer: &str,
    usages: &[&str],
) -> CertificateSigningRequestSpec {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    let pem = params
        .serialize_request(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
        .unwrap();
    CertificateSigningRequestSpec {
        request: ByteString(pem.into_bytes()),
        signer_name: signer.to_owned(),
        usages: Some(usages.iter().map(|usage| (*usage).to_owned()).collect()),
        ..CertificateSigningRequestSpec::default()
    }
}

const CLIENT_USAGES: [&str; 2] = ["digital signature", "client auth"];

fn client_fault(
    common_name: &str,
    organization: &str,
    names: &[&str],
    usages: &[&str],
) -> Option<String> {
    let spec = request(common_name, organization, names, NODE_CLIENT, usages);
    node_client_fault(&spec, &read(&spec).unwrap())
}

#[test]
fn a_node_asks_for_itself_and_nothing_more() {
    assert_eq!(
        client_fault("system:node:a", "system:nodes", &[], &CLIENT_USAGES),
        None
    );
    let more = ["digital signature", "client auth", "key encipherment"];
    assert_eq!(
        client_fault("system:node:a", "system:nodes", &[], &more),
        None
    );
    assert!(client_fault("admin", "system:nodes", &[], &CLIENT_USAGES).is_some());
    assert!(client_fault("system:node:a", "system:masters", &[], &CLIENT_USAGES).is_some());
    assert!(client_fault("system:node:a", "system:nodes", &["a"], &CLIENT_USAGES).is_some());
    assert!(client_fault("system:node:a", "system:nodes", &[], &["client auth"]).is_some());
    let server = ["digital signature", "client auth", "server auth"];
    assert!(client_fault("system:node:a", "system:nodes", &[], &server).is_some());
}

#[test]
fn a_serving_request_needs_a_name_or_an_address() {
    let usages = ["digital signature", "server auth"];
    let fault = |names: &[&str]| {
        let spec = request(
            "system:node:a",
            "system:nodes",
            names,
            NODE_SERVING,
            &usages,
        );
        node_serving_fault(&spec, &read(&spec).unwrap())
    };
    assert_eq!(fault(&["a", "10.0.0.1"]), None);
    assert!(fault(&[]).is_some());
}

#[test]
fn what_is_no_request_is_refused() {
    let mut spec = request("a", "b", &[], NODE_CLIENT, &[]);
    let mut text = String::from_utf8(spec.request.0.clone()).unwrap();
    let middle = text.len() / 2;
    let other = if text.as_bytes()[middle] == b'A' {
        "B"
    } else {
        "A"
    };
    text.replace_range(middle..=middle, other);
    spec.request = ByteString(text.into_bytes());
    assert!(
        read(&spec).is_err(),
        "a request that was changed is not signed by its key"
    );
    spec.request = ByteString(b"\xff\xfe".to_vec());
    assert!(matches!(read(&spec), Err(AskError::Pem(_))));
}

/// Made by OpenSSL: `/CN=jane/O=dev/O=ops`, once in sets of their own, once in one set, as Go
/// writes them.
#[test]
fn all_organizations_of_a_request_are_seen() {
    for text in [
        include_str!("tests/several-sets.csr"),
        include_str!("tests/one-set.csr"),
    ] {
        let spec = CertificateSigningRequestSpec {
            request: ByteString(text.as_bytes().to_vec()),
            ..CertificateSigningRequestSpec::default()
        };
        let asked = read(&spec).unwrap();
        assert_eq!(asked.common_name, "jane");
        assert_eq!(asked.organizations, ["dev", "ops"]);
        assert_eq!(asked.emails, ["jane@example.com"]);
        assert_eq!(asked.uris, ["spiffe://x/jane"]);
    }
}

#[test]
fn faults_are_told_in_upstreams_words() {
    let told = |names: &[&str], usages: &[&str]| {
        client_fault("system:node:a", "system:nodes", names, usages).unwrap()
    };
    assert_eq!(
        told(&["a"], &CLIENT_USAGES),
        "DNS subjectAltNames are not allowed"
    );
    assert_eq!(
        told(&[], &["client auth"]),
        "usages did not match [client auth digital signature key encipherment]"
    );
}
