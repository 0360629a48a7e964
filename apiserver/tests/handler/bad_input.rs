//! What strangers, broken programs and forgers send over the network, all at once: each is
//! answered or cut off within its bound, and whoever is in order notices nothing.

mod network; // Connections of clients of all kinds.

use super::quotas::in_force;
use super::site::{CONFIG_MAPS, PATIENCE, Site, config_map, site};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coracle_apiserver::authenticate::User;
use coracle_apiserver::jose::SigningKey;
use futures::future::{BoxFuture, join_all};
use network::{Certificate, ask, bearer, certificate, rest, stalled, tcp, tls, tls_as};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ASKED: &str = "/api/v1/namespaces/default";
const SECRET: &str = "/api/v1/namespaces/default/secrets/theirs";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ADMIN: (&str, &str) = ("kubernetes-admin", "system:masters");
/// The longest bound of all: a whole request has a minute.
const BOUND: Duration = Duration::from_secs(61);
const HOUR: i64 = 3600;

/// The good token of an account, and a key that signs as the server does.
async fn account(site: &Site) -> (String, SigningKey) {
    let account = json!({ "metadata": { "name": "bot" } });
    site.post(ACCOUNTS, &account).await.ok();
    let wanted = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "expirationSeconds": HOUR },
    });
    let made = site.post(&format!("{ACCOUNTS}/bot/token"), &wanted).await;
    let token = made.ok()["status"]["token"].as_str().unwrap().to_owned();
    let binding = json!({
        "metadata": { "name": "bot" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit",
        },
        "subjects": [{ "kind": "ServiceAccount", "name": "bot", "namespace": "default" }],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    site.post(&bindings, &binding).await.ok();
    let user = User::named("system:serviceaccount:default:bot");
    let attributes = json!({ "verb": "get", "resource": "namespaces", "name": "default" });
    site.until_may(&user, attributes).await;
    let key = std::fs::read(site.directory.path().join("pki/sa.key")).unwrap();
    (token, SigningKey::from_pem(&key).unwrap())
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// Tokens that are not good, each in its own way.
fn bad_tokens(good: &str, own: &SigningKey) -> Vec<String> {
    let foreign = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let foreign = SigningKey::from_pem(foreign.as_bytes()).unwrap();
    let now = claims(good);
    let mut expired = now.clone();
    expired["exp"] = (now["iat"].as_i64().unwrap() - 600).into();
    let mut early = now.clone();
    early["nbf"] = (now["iat"].as_i64().unwrap() + 600).into();
    let mut elsewhere = now.clone();
    elsewhere["aud"] = json!(["vault"]);
    let none =
        |name: &str| URL_SAFE_NO_PAD.encode(format!("{{\"alg\":\"{name}\",\"typ\":\"JWT\"}}"));
    let payload = good.split('.').nth(1).unwrap();
    let signature = good.split('.').nth(2).unwrap();
    assert_eq!(now["iss"], ISSUER);
    vec![
        "nonsense-that-nobody-issued".to_owned(),
        "abcdef.0123456789abcdef".to_owned(),
        own.sign(&expired).unwrap(),
        own.sign(&early).unwrap(),
        own.sign(&elsewhere).unwrap(),
        foreign.sign(&now).unwrap(),
        format!("{}.{payload}.", none("none")),
        format!("{}.{payload}.{signature}", none("None")),
        format!("{}.{payload}.{signature}", none("HS256")),
    ]
}

/// Certificates that are not good, each in its own way.
fn bad_certificates(site: &Site) -> Vec<Certificate> {
    vec![
        certificate(None, ADMIN, (-HOUR, HOUR)),
        certificate(Some(site), ADMIN, (-2 * HOUR, -HOUR)),
        certificate(Some(site), ADMIN, (HOUR, 2 * HOUR)),
    ]
}

async fn unrecognized(site: &Site, tokens: &[String], certificates: Vec<Certificate>) {
    let check = |(code, body): (u16, String), what: &str| {
        let status: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}"));
        let expected = (401, &"Unauthorized".into());
        assert_eq!((code, &status["message"]), expected, "{what}");
    };
    let tokens = tokens.iter().map(|token| async move {
        check(ask(tls(site).await, ASKED, &bearer(token)).await, token);
    });
    let shown = certificates.into_iter().map(|shown| async move {
        let stream = tls_as(site, Some(shown)).await;
        check(ask(stream, ASKED, "").await, "a certificate");
    });
    tokio::join!(join_all(tokens), join_all(shown));
}

async fn too_large(site: &Site) {
    let headers = format!("x-huge: {}\r\n", "x".repeat(200_000));
    assert_eq!(ask(tls(site).await, ASKED, &headers).await.0, 431);
    let many = "x: y\r\n".repeat(2_000);
    assert_eq!(ask(tls(site).await, ASKED, &many).await.0, 431);
}

async fn no_tls(site: &Site) {
    let said = [
        &b"\x16\x03\x01\x00\x05hello"[..],
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        &[0xff; 4096],
    ];
    let all = said.map(|said| async move {
        let mut stream = tcp(site).await;
        stream.write_all(said).await.unwrap();
        rest(stream).await;
    });
    join_all(all).await;
}

async fn another_nodes_secret(site: &Site) {
    let node = ("system:node:n1", "system:nodes");
    let shown = certificate(Some(site), node, (-HOUR, HOUR));
    let (code, body) = ask(tls_as(site, Some(shown)).await, SECRET, "").await;
    let status: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "secrets \"theirs\" is forbidden: User \"system:node:n1\" cannot get resource \"secrets\" \
         in API group \"\" in the namespace \"default\": no relationship found between node 'n1' \
         and this object"
    );
}

/// Jane may write her role, and has nothing else to give.
async fn jane(site: &Site) -> Value {
    let role = json!({
        "metadata": { "name": "jane" },
        "rules": [{
            "verbs": ["get", "update"], "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles"],
        }],
    });
    let binding = json!({
        "metadata": { "name": "jane" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jane" },
        "subjects": [{ "kind": "User", "name": "jane" }],
    });
    let below = format!("{RBAC}/namespaces/default");
    let role = site.post(&format!("{below}/roles"), &role).await.ok();
    let bindings = format!("{below}/rolebindings");
    site.post(&bindings, &binding).await.ok();
    let attributes = json!({
        "verb": "update", "group": "rbac.authorization.k8s.io", "resource": "roles",
        "namespace": "default",
    });
    site.until_may(&User::named("jane"), attributes).await;
    role
}

async fn a_role_with_more(site: &Site, mut role: Value) {
    let path = format!("{RBAC}/namespaces/default/roles/jane");
    let secrets = json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] });
    role["rules"].as_array_mut().unwrap().push(secrets);
    let user = User::named("jane");
    let answer = site.ask_as(&user, "PUT", &path, "json", &role).await;
    let failure = answer.failure();
    let more = "attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], \
                Resources:[\"secrets\"], Verbs:[\"get\"]}";
    assert!(
        failure.starts_with("403 ") && failure.ends_with(more),
        "{failure}"
    );
}

/// Fifty at once where there is room for twenty.
async fn too_many(site: &Site) {
    const CREATORS: usize = 50;
    const ROOM: usize = 20;
    let hard = json!({ "hard": { "count/configmaps": ROOM.to_string() } });
    in_force(site, "q", hard, json!({ "count/configmaps": "0" })).await;
    let created = (0..CREATORS).map(|number| async move {
        let map = config_map(&format!("m{number}"), "1");
        site.post(CONFIG_MAPS, &map).await.status.as_u16()
    });
    let mut codes = BTreeMap::new();
    for code in join_all(created).await {
        *codes.entry(code).or_insert(0) += 1;
    }
    assert_eq!(codes, BTreeMap::from([(201, ROOM), (403, CREATORS - ROOM)]));
}

async fn attempts(site: &Site) -> Vec<String> {
    let text = String::from_utf8(site.get("/metrics").await.body.to_vec()).unwrap();
    let own = text
        .lines()
        .filter_map(|line| line.strip_prefix("authentication_attempts"));
    own.filter(|line| !line.contains("success"))
        .map(str::to_owned)
        .collect()
}

/// Asks again and again until `others` is through; how often.
async fn good_meanwhile(site: &Site, token: &str, others: BoxFuture<'_, ()>) -> usize {
    let mut count = 0;
    let asking = async {
        loop {
            let (code, body) = ask(tls(site).await, ASKED, &bearer(token)).await;
            assert_eq!(code, 200, "the good client is refused: {body}");
            count += 1;
        }
    };
    tokio::select! {
        () = others => {}
        () = asking => {}
    }
    count
}

#[tokio::test]
async fn bad_input_is_refused_within_its_bound_and_the_others_go_on() {
    let site = site().await;
    site.run();
    let (token, key) = account(&site).await;
    let role = jane(&site).await;
    let stalled = stalled(&site, ACCOUNTS, &token).await;

    let (tokens, certificates) = (bad_tokens(&token, &key), bad_certificates(&site));
    let unknown = tokens.len() + certificates.len();
    let all = async {
        tokio::join!(
            unrecognized(&site, &tokens, certificates),
            too_large(&site),
            no_tls(&site),
            another_nodes_secret(&site),
            a_role_with_more(&site, role),
            too_many(&site),
        );
    };
    let served = good_meanwhile(&site, &token, Box::pin(all));
    let served = tokio::time::timeout(PATIENCE, served).await.unwrap();
    assert!(served >= 2, "{served} answers beside all that");
    let expected = [
        format!("{{result=\"error\"}} {unknown}"),
        "{result=\"failure\"} 0".to_owned(),
    ];
    assert_eq!(attempts(&site).await, expected);
    // What made those certificates bad is their time and their maker alone.
    let admin = certificate(Some(&site), ADMIN, (-HOUR, HOUR));
    assert_eq!(
        ask(tls_as(&site, Some(admin)).await, ASKED, "").await.0,
        200
    );

    // From here on time runs as fast as everybody waits.
    tokio::time::pause();
    let begun = Instant::now();
    let ends = stalled.into_iter().map(|(name, end)| async move {
        let ended = tokio::time::timeout(BOUND, end).await;
        let said = ended.unwrap_or_else(|_| panic!("{name} holds its place for ever"));
        (name, String::from_utf8_lossy(&said).into_owned())
    });
    let ends: BTreeMap<&str, String> = join_all(ends).await.into_iter().collect();
    assert!(begun.elapsed() <= BOUND);
    let answer = &ends["half of a body"];
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    tokio::time::resume();
    let (code, body) = ask(tls(&site).await, ASKED, &bearer(&token)).await;
    assert_eq!(code, 200, "{body}");
}
