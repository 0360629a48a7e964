//! An issuer outside the cluster: the server fetches its keys over TLS and believes its tokens.

use crate::identity::{kubeconfig_of_token, with};
use crate::lab::{Cluster, Host, Lab, wait};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A piece of a token this long tells too much.
const PIECE: usize = 12;
/// In seconds: the year 2100.
const FAR_AWAY: i64 = 4_102_444_800;

/// A listener at a free port of a host of the lab.
fn listen(host: &Host) -> TcpListener {
    let (namespace, address) = (host.namespace.clone(), host.address.clone());
    // The network namespace is the thread's alone.
    let bound = std::thread::spawn(move || {
        let namespace = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        TcpListener::bind((address, 0)).unwrap()
    });
    bound.join().unwrap()
}

/// Signs tokens, and publishes the key that they are checked with.
struct Signer {
    key: EcdsaKeyPair,
    id: &'static str,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap();
        Self { key, id }
    }

    fn jwk(&self) -> Value {
        // An uncompressed point: a byte that says so, x and y.
        let point = self.key.public_key().as_ref();
        let (x, y) = point[1..].split_at(32);
        let text = |bytes| URL_SAFE_NO_PAD.encode(bytes);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": text(x), "y": text(y),
        })
    }

    fn sign(&self, claims: &Value) -> String {
        let head = json!({ "alg": "ES256", "typ": "JWT", "kid": self.id });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(claims));
        let signature = self
            .key
            .sign(&SystemRandom::new(), signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

struct Issuer {
    url: String,
    authority_pem: String,
}

impl Issuer {
    /// Serves discovery and keys from a host until the test ends.
    fn start(host: &Host, signer: &Signer) -> Self {
        let listener = listen(host);
        let url = format!("https://{}", listener.local_addr().unwrap());
        let key = rcgen::KeyPair::generate().unwrap();
        let names = rcgen::CertificateParams::new([host.address.clone()]).unwrap();
        let certificate = names.self_signed(&key).unwrap();
        let own = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], own.into())
            .unwrap();
        let discovery = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") });
        let keys = json!({ "keys": [signer.jwk()] });
        let documents = BTreeMap::from([
            ("/.well-known/openid-configuration", discovery.to_string()),
            ("/keys", keys.to_string()),
        ]);
        let config = Arc::new(config);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // A client that goes away is no concern of the next.
                drop(answer(stream, Arc::clone(&config), &documents));
            }
        });
        Self {
            url,
            authority_pem: certificate.pem(),
        }
    }

    fn configuration(&self) -> String {
        let authenticator = json!({
            "issuer": {
                "url": self.url, "audiences": ["edge"],
                "certificateAuthority": self.authority_pem,
            },
            "claimMappings": {
                "username": { "claim": "sub", "prefix": "corp:" },
                "groups": { "claim": "teams", "prefix": "corp:" },
                "uid": { "claim": "number" },
                "extra": [{ "key": "example.com/site", "valueExpression": "claims.site" }],
            },
            "claimValidationRules": [{ "claim": "active", "requiredValue": "yes" }],
        });
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [authenticator],
        })
        .to_string()
    }

    fn claims(&self) -> Value {
        json!({
            "iss": self.url, "aud": "edge", "sub": "jane", "exp": FAR_AWAY, "number": "7",
            "teams": ["dev", "ops"], "site": "north", "active": "yes",
        })
    }
}

/// One request and its answer.
fn answer(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    documents: &BTreeMap<&str, String>,
) -> Result<(), Box<dyn std::error::Error>> {
    let connection = rustls::ServerConnection::new(config)?;
    let mut stream = BufReader::new(rustls::StreamOwned::new(connection, stream));
    let mut first = String::new();
    stream.read_line(&mut first)?;
    let mut line = String::new();
    while line.trim_end() != "" || line.is_empty() {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match documents.get(path) {
        Some(document) => ("200 OK", document.as_str()),
        None => ("404 Not Found", ""),
    };
    let length = body.len();
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}

fn who(cluster: &Cluster, token: &str) -> Result<Value, String> {
    let kubeconfig = kubeconfig_of_token(cluster, token);
    let arguments = ["auth", "whoami", "-o", "json"];
    let said = with(cluster, &["--kubeconfig", &kubeconfig], &arguments)?;
    let review: Value = serde_json::from_str(&said).unwrap();
    Ok(review["status"]["userInfo"].clone())
}

#[test]
fn an_issuer_outside_the_cluster_names_users() {
    let mut lab = Lab::new();
    let host = lab.host("issuer");
    let (own, foreign) = (Signer::new("one"), Signer::new("one"));
    let issuer = Issuer::start(&host, &own);
    let file = lab.path("authentication.yaml");
    std::fs::write(&file, issuer.configuration()).unwrap();
    let file = file.display().to_string();
    let flags = ["--authentication-config", &file, "--log", "debug"];
    let cluster = lab.server("oidc", &flags);

    let good = own.sign(&issuer.claims());
    // The keys are fetched beside everything else.
    let jane = wait("the issuer is known", || who(&cluster, &good).ok());
    assert_eq!(jane["username"], "corp:jane");
    assert_eq!(jane["uid"], "7");
    assert_eq!(
        jane["groups"],
        json!(["corp:dev", "corp:ops", "system:authenticated"])
    );
    assert_eq!(jane["extra"]["example.com/site"], json!(["north"]));

    let changed = |field: &str, value: Value| {
        let mut claims = issuer.claims();
        claims[field] = value;
        own.sign(&claims)
    };
    let (head, rest) = good.split_once('.').unwrap();
    let none = URL_SAFE_NO_PAD.encode("{\"alg\":\"none\",\"typ\":\"JWT\"}");
    let bad = [
        ("of another key", foreign.sign(&issuer.claims())),
        ("expired", changed("exp", 1_000_000_000.into())),
        ("for another audience", changed("aud", "vault".into())),
        ("against the rule", changed("active", "no".into())),
        ("not signed", format!("{none}.{rest}")),
        ("changed", format!("{head}.{}{rest}", "e30")),
    ];
    let refused_before = refused(&cluster);
    for (what, token) in &bad {
        let error = who(&cluster, token).unwrap_err();
        assert!(error.contains("Unauthorized"), "{what}: {error}");
    }
    assert!(refused(&cluster) >= refused_before + bad.len() as u64);
    assert_eq!(who(&cluster, &good).unwrap(), jane);

    let log = lab.process(cluster.process).log_text();
    assert!(log.contains("a request was not authenticated"), "{log}");
    let shown = bad.iter().map(|(_, token)| token).chain([&good]);
    for piece in shown.flat_map(|token| token.as_bytes().windows(PIECE)) {
        let piece = str::from_utf8(piece).unwrap();
        assert!(!log.contains(piece), "{piece} of a token is in the log");
    }
}

/// How many attempts to come in showed something that was not good.
fn refused(cluster: &Cluster) -> u64 {
    let text = cluster.kubectl(&["get", "--raw", "/metrics"]);
    let start = "authentication_attempts{result=\"error\"} ";
    let count = text.lines().find_map(|line| line.strip_prefix(start));
    count.unwrap().parse().unwrap()
}
