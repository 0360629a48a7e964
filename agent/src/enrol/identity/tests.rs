//! What keeps a node from enrolling, before any server is asked.

use super::super::files::{Files, Pair};
use super::{CLIENT, enrol, known, parse_token};
use crate::{AgentError, Config, Resources};
use coracle_client::clock::Clock;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn config(data_dir: &Path, token: Option<&str>) -> Config {
    Config {
        server_url: "https://127.0.0.1:1".into(),
        token: token.map(str::to_owned),
        joining: None,
        node_name: "edge".into(),
        node_ips: Default::default(),
        labels: Vec::new(),
        taints: Vec::new(),
        allowed_unsafe_sysctls: Vec::new(),
        seccomp_default: false,
        pod_pids_max: 0,
        static_pods: None,
        kubelet_dir: crate::KubeletDir::Own,
        local_path_dir: None,
        resources: Resources::default(),
        container_runtime: None,
        resolv_conf: None,
        dns: Default::default(),
        cni: Default::default(),
        routing: None,
        data_dir: data_dir.to_owned(),
    }
}

/// An authority, and a certificate of a node until that year.
fn certificates(name: &str, year: i32) -> (String, Pair) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, format!("system:node:{name}"));
    let certificate = params.self_signed(&key).unwrap().pem();
    let pair = Pair {
        certificate: certificate.clone(),
        key: key.serialize_pem(),
    };
    (certificate, pair)
}

#[tokio::test]
async fn a_new_node_needs_a_token() {
    let scratch = tempfile::tempdir().unwrap();
    let enrolled = enrol(&config(scratch.path(), None), &Clock::system()).await;
    assert!(matches!(enrolled, Err(AgentError::TokenMissing)));
    let enrolled = enrol(&config(scratch.path(), Some("abc")), &Clock::system()).await;
    assert!(matches!(enrolled, Err(AgentError::TokenMalformed)));
}

#[tokio::test]
async fn a_node_that_is_known_needs_none_until_its_certificate_is_worth_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let files = Files::open(scratch.path()).unwrap();
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
    let config = config(scratch.path(), None);
    let store = |name: &str, year: i32| {
        let (authority, pair) = certificates(name, year);
        files.set_authority(&authority).unwrap();
        files.set_pair(CLIENT, &pair).unwrap();
        files.clone()
    };
    let files = store("edge", 2031);
    let mode = files
        .path("client.pem")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let enrolled = known(&config, &files, None, &clock).unwrap().unwrap();
    assert!(!enrolled.is_new && enrolled.identity.has_certificate());
    // A token of another server.
    let hash = "0".repeat(64);
    let token = parse_token(&format!("coracle1.{hash}.abcdef.0123456789abcdef"));
    assert!(
        known(&config, &files, token.as_ref(), &clock)
            .unwrap()
            .is_none()
    );
    let files = store("edge", 2029);
    assert!(known(&config, &files, None, &clock).unwrap().is_none());
    let files = store("other", 2031);
    assert!(known(&config, &files, None, &clock).unwrap().is_none());
}
