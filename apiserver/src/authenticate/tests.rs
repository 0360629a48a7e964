//! Certificates, bootstrap tokens, or nothing: who asks.

use super::*;
use crate::pki::Pki;
use crate::pki::authority::{Authority, LEAF_LIFE, Leaf, Usage};
use crate::pki::names::ServerNames;
use crate::tokens;
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
    let tokens = Tokens::open(directory.path(), &tokens::Settings::default()).unwrap();
    let tokens = Arc::new(tokens);
    let view = Objects::new(secrets.into_iter().map(|secret| ("secrets", secret)));
    Bench {
        authenticator: Authenticator::open(
            &Settings::default(),
            pki.clients().clone(),
            view,
            tokens,
        )
        .unwrap(),
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

impl Bench {
    fn ask(
        &self,
        request: &Parts,
        peer: Option<&PeerCertificate>,
        now: Timestamp,
    ) -> Result<User, Status> {
        let mut remarks = Remarks::default();
        let asked = self
            .authenticator
            .authenticate(request, peer, now, &mut remarks);
        crate::view::tests::now_or_panic(asked)
    }
}

fn with_token(bench: &Bench, token: &str) -> Result<User, Status> {
    let header = format!("Bearer {token}");
    bench.ask(&request(&[("authorization", &header)]), None, now())
}

const TOKEN: &str = "abcdef.0123456789abcdef";

#[test]
fn nothing_shown_is_anonymous() {
    let user = bench(vec![]).ask(&request(&[]), None, now()).unwrap();
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
        .ask(
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
        organizations: &[group],
        names: &[],
        usage: Usage::Client,
        life: LEAF_LIFE,
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
        bench.ask(&request(&[]), Some(&peer), at)
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
    let refused = bench.ask(&request(&[]), Some(&foreign), now());
    assert_eq!(refused, Err(Status::unauthorized()));
    let header = format!("Bearer {TOKEN}");
    let with_token = request(&[("authorization", &header)]);
    let user = bench.ask(&with_token, Some(&foreign), now());
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

#[test]
fn a_certificate_that_is_taken_back_ends_with_the_next_request() {
    use crate::pki::revoked::{KEY, NAME, NAMESPACE, Revoked};
    let directory = tempfile::tempdir().unwrap();
    let pki = Pki::open(directory.path(), ServerNames::default(), now()).unwrap();
    let tokens = Tokens::open(directory.path(), &tokens::Settings::default()).unwrap();
    let view = Objects::new([]);
    let (settings, clients) = (Settings::default(), pki.clients().clone());
    let authenticator = Authenticator::open(&settings, clients, view.clone(), Arc::new(tokens));
    let bench = Bench {
        authenticator: authenticator.unwrap(),
        directory,
    };
    let peer = peer(bench.directory.path(), "jane", "dev");
    let ask = |at| bench.ask(&request(&[]), Some(&peer), at);
    assert_eq!(ask(now()).unwrap().name, "jane");
    let mut list = Revoked::default();
    list.add_user("jane", now());
    let map = json!({
        "metadata": { "namespace": NAMESPACE, "name": NAME },
        "data": { KEY: list.to_text() },
    });
    view.put("configmaps", map);
    assert_eq!(ask(now()), Err(Status::unauthorized()));
    let later = now() + jiff::SignedDuration::from_secs(1);
    let new = Authority::open(bench.directory.path(), now()).unwrap();
    let leaf = Leaf {
        common_name: "jane",
        organizations: &[],
        names: &[],
        usage: Usage::Client,
        life: LEAF_LIFE,
    };
    let new = PeerCertificate::new(&[new.issue(&leaf, later).unwrap().certificate]).unwrap();
    let user = bench.ask(&request(&[]), Some(&new), later).unwrap();
    assert_eq!(user.name, "jane");
}

#[test]
fn a_certificate_that_is_not_yet_valid_is_refused() {
    let bench = bench(vec![]);
    let ca = Authority::open(bench.directory.path(), now()).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "jane");
    params.not_before = rcgen::date_time_ymd(2026, 7, 1);
    params.not_after = rcgen::date_time_ymd(2027, 7, 1);
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let signer = rcgen::KeyPair::from_pem(ca.key_pem()).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_der(ca.certificate(), signer).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let chain = [certificate.der().clone()];
    let ask = |at: &str| {
        let peer = PeerCertificate::new(&chain).unwrap();
        bench.ask(&request(&[]), Some(&peer), at.parse().unwrap())
    };
    assert_eq!(ask("2026-06-30T23:00:00Z"), Err(Status::unauthorized()));
    assert_eq!(ask("2026-07-02T00:00:00Z").unwrap().name, "jane");
}

#[test]
fn tokens_in_a_file_and_no_anonymous_requests() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens.csv");
    std::fs::write(&file, "s3cret,jane,7,dev\n").unwrap();
    let pki = Pki::open(directory.path(), ServerNames::default(), now()).unwrap();
    let tokens = Tokens::open(directory.path(), &tokens::Settings::default()).unwrap();
    let settings = Settings {
        token_file: Some(file),
        anonymous: Some(false),
        ..Settings::default()
    };
    let (clients, view) = (pki.clients().clone(), Objects::new([]));
    let authenticator = Authenticator::open(&settings, clients, view, Arc::new(tokens));
    let bench = Bench {
        authenticator: authenticator.unwrap(),
        directory,
    };
    let jane = with_token(&bench, "s3cret").unwrap();
    assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "7"));
    assert_eq!(jane.groups, ["dev", "system:authenticated"]);
    assert_eq!(with_token(&bench, "s3cre7"), Err(Status::unauthorized()));
    let nobody = bench.ask(&request(&[]), None, now());
    assert_eq!(nobody, Err(Status::unauthorized()));
}

/// What is logged, at every level, while `act` runs.
fn logged(act: impl FnOnce()) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, act);
    let bytes = log.0.lock().clone();
    String::from_utf8(bytes).unwrap()
}

#[derive(Clone, Default)]
struct Log(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A piece this long tells too much.
const PIECE: usize = 8;

#[test]
fn a_refusal_is_logged_without_any_part_of_what_was_shown() {
    let foreign = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let foreign = crate::jose::SigningKey::from_pem(foreign.as_bytes()).unwrap();
    let claims = json!({ "iss": tokens::ISSUER_DEFAULT, "aud": [tokens::ISSUER_DEFAULT] });
    let forged = foreign.sign(&claims).unwrap();
    let (head, signature) = (
        URL_SAFE_NO_PAD.encode("{\"alg\":\"none\"}"),
        forged.split_once('.').unwrap().1,
    );
    let secret = secret(|data| data["expiration"] = "2026-05-31T23:59:59Z".into());
    for token in [
        TOKEN,
        "abcdef.fedcba9876543210",
        "nonsense-that-nobody-issued",
        &forged,
        &format!("{head}.{signature}"),
        &forged[..forged.len() - 4],
    ] {
        let encoded = URL_SAFE_NO_PAD.encode(token);
        let protocols = format!("{}{encoded}", bearer::PROTOCOL_PREFIX);
        for (name, value) in [
            ("authorization", format!("Bearer {token}")),
            ("sec-websocket-protocol", protocols),
        ] {
            let bench = bench(vec![secret.clone()]);
            let log = logged(|| {
                let refused = bench.ask(&request(&[(name, &value)]), None, now());
                assert_eq!(refused, Err(Status::unauthorized()));
            });
            assert!(log.contains("a request was not authenticated"), "{log}");
            for shown in [token.as_bytes(), encoded.as_bytes()] {
                for piece in shown.windows(PIECE) {
                    let piece = str::from_utf8(piece).unwrap();
                    assert!(!log.contains(piece), "{piece} of {token} is in {log}");
                }
            }
        }
    }
}
