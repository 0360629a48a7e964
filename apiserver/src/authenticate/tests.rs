//! Certificates, bootstrap tokens, or nothing: who asks.

use super::*;
use crate::pki::Pki;
use crate::pki::authority::{Authority, Leaf, Usage};
use crate::pki::names::ServerNames;
use crate::tokens::ISSUER_DEFAULT;
use crate::view::tests::Objects;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

struct Bench {
    authenticator: Authenticator,
    directory: tempfile::TempDir,
}

fn bench(secrets: Vec<Value>) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), ServerNames::default(), now()).unwrap();
    let tokens = Tokens::open(directory.path(), ISSUER_DEFAULT).unwrap();
    let tokens = Arc::new(tokens);
    let view = Objects::new(secrets.into_iter().map(|secret| ("secrets", secret)));
    Bench {
        authenticator: Authenticator::new(pki.clients().clone(), view, tokens),
        directory,
    }
}

fn secret(change: impl FnOnce(&mut Value)) -> Value {
    let mut data = json!({
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:coracle:default-node-token",
    });
    change(&mut data);
    let data: serde_json::Map<String, Value> = data
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(value.as_str().unwrap()).into()))
        .collect();
    json!({
        "metadata": { "namespace": "kube-system", "name": "bootstrap-token-abcdef" },
        "type": "bootstrap.kubernetes.io/token",
        "data": data,
    })
}

fn request(headers: &[(&str, &str)]) -> Parts {
    let mut builder = http::Request::builder();
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn with_token(bench: &Bench, token: &str) -> Result<User, Status> {
    let header = format!("Bearer {token}");
    bench
        .authenticator
        .authenticate(&request(&[("authorization", &header)]), None, now())
}

const TOKEN: &str = "abcdef.0123456789abcdef";

#[test]
fn nothing_shown_is_anonymous() {
    let user = bench(vec![])
        .authenticator
        .authenticate(&request(&[]), None, now())
        .unwrap();
    assert_eq!(user, User::anonymous());
}

#[test]
fn a_bootstrap_token_names_its_user() {
    let user = with_token(&bench(vec![secret(|_| {})]), TOKEN).unwrap();
    assert_eq!(user.name, "system:bootstrap:abcdef");
    expect_test::expect![[r#"
        [
            "system:bootstrappers",
            "system:bootstrappers:coracle:default-node-token",
            "system:authenticated",
        ]
    "#]]
    .assert_debug_eq(&user.groups);
}

#[test]
fn a_bad_token_is_refused_and_never_anonymous() {
    let good = || bench(vec![secret(|_| {})]);
    for token in [
        "abcdef.0123456789abcdeg",
        "abcdef.0123456789abcde",
        "ghijkl.0123456789abcdef",
        "nonsense",
        "ABCDEF.0123456789abcdef",
    ] {
        assert_eq!(
            with_token(&good(), token),
            Err(Status::unauthorized()),
            "{token}"
        );
    }
    let changes: [fn(&mut Value); 6] = [
        |data| data["expiration"] = "2026-05-31T23:59:59Z".into(),
        |data| data["expiration"] = "soon".into(),
        |data| data["usage-bootstrap-authentication"] = "false".into(),
        |data| data["token-id"] = "other0".into(),
        |data| data["token-secret"] = "".into(),
        |data| data["auth-extra-groups"] = "system:masters".into(),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let bench = bench(vec![secret(change)]);
        assert_eq!(
            with_token(&bench, TOKEN),
            Err(Status::unauthorized()),
            "{index}"
        );
    }
    let mut opaque = secret(|_| {});
    opaque["type"] = "Opaque".into();
    assert_eq!(
        with_token(&bench(vec![opaque]), TOKEN),
        Err(Status::unauthorized())
    );
}

#[test]
fn a_token_with_time_left_works_also_as_a_subprotocol() {
    let bench = bench(vec![secret(|data| {
        data["expiration"] = "2026-06-01T00:00:01Z".into()
    })]);
    let encoded = URL_SAFE_NO_PAD.encode(TOKEN);
    let protocols = format!("v5.channel.k8s.io, {}{encoded}", bearer::PROTOCOL_PREFIX);
    let user = bench
        .authenticator
        .authenticate(
            &request(&[("sec-websocket-protocol", &protocols)]),
            None,
            now(),
        )
        .unwrap();
    assert_eq!(user.name, "system:bootstrap:abcdef");
}

fn peer(directory: &std::path::Path, name: &str, group: &str) -> PeerCertificate {
    let authority = Authority::open(directory, now()).unwrap();
    let leaf = Leaf {
        common_name: name,
        organization: group,
        names: &[],
        usage: Usage::Client,
    };
    let chain: [CertificateDer<'static>; 1] = [authority.issue(&leaf, now()).unwrap().certificate];
    PeerCertificate::new(&chain).unwrap()
}

#[test]
fn a_certificate_of_the_ca_names_user_and_groups_while_it_is_in_force() {
    let bench = bench(vec![]);
    let peer = peer(bench.directory.path(), "jane", "dev");
    let ask = |at: &str| {
        let at = at.parse().unwrap();
        bench
            .authenticator
            .authenticate(&request(&[]), Some(&peer), at)
    };
    let user = ask("2026-06-01T00:00:00Z").unwrap();
    assert_eq!(user.name, "jane");
    assert_eq!(user.groups, ["dev", "system:authenticated"]);
    assert!(user.extra[certificate::CREDENTIAL_ID][0].starts_with("X509SHA256="));
    assert_eq!(ask("2028-06-01T00:00:00Z"), Err(Status::unauthorized()));
    assert!(PeerCertificate::new(&[]).is_none());
}

#[test]
fn a_foreign_certificate_is_refused_but_a_token_beside_it_counts() {
    let other = tempfile::tempdir().unwrap();
    let foreign = peer(other.path(), "kubernetes-admin", "system:masters");
    let bench = bench(vec![secret(|_| {})]);
    let refused = bench
        .authenticator
        .authenticate(&request(&[]), Some(&foreign), now());
    assert_eq!(refused, Err(Status::unauthorized()));
    let header = format!("Bearer {TOKEN}");
    let with_token = request(&[("authorization", &header)]);
    let user = bench
        .authenticator
        .authenticate(&with_token, Some(&foreign), now());
    assert_eq!(user.unwrap().name, "system:bootstrap:abcdef");
}

#[test]
fn in_process_users_have_the_groups_their_name_brings() {
    let groups = |name: &str| User::named(name).groups.join(" ");
    assert_eq!(
        groups("system:serviceaccount:kube-system:deployment-controller"),
        "system:serviceaccounts system:serviceaccounts:kube-system system:authenticated"
    );
    assert_eq!(
        groups("system:node:n1"),
        "system:nodes system:authenticated"
    );
    assert_eq!(groups("system:kube-scheduler"), "system:authenticated");
    assert_eq!(User::named("system:node:n1").node_name(), Some("n1"));
    assert_eq!(User::named("n1").node_name(), None);
}
