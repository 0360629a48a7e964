//! Real TLS on the loopback: trust, identity, a change of certificate, tokens, the first
//! contact, upgrades, kubeconfigs.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::upgrade;

type Issuer = CertifiedIssuer<'static, KeyPair>;

struct Pair {
    certificate: String,
    der: CertificateDer<'static>,
    key: String,
}

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "test-ca");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn issue(ca: &Issuer, name: &str) -> Pair {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    Pair {
        certificate: certificate.pem(),
        der: certificate.der().clone(),
        key: key.serialize_pem(),
    }
}

struct Server {
    ca: Issuer,
    alice: Pair,
    bob: Pair,
    port: u16,
    connections: Arc<AtomicUsize>,
}

/// Serves at any free port and tells each caller who it is.
async fn serve() -> Server {
    let ca = authority();
    let (alice, bob) = (issue(&ca, "alice"), issue(&ca, "bob"));
    let own = issue(&ca, "localhost");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![own.der.clone()], private_key(&own))
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let names = [(alice.der.clone(), "alice"), (bob.der.clone(), "bob")];
    let (ca_pem, counter) = (ca.pem(), connections.clone());
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let (acceptor, names, ca_pem) = (acceptor.clone(), names.clone(), ca_pem.clone());
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else {
                    return;
                };
                let peer = tls
                    .get_ref()
                    .1
                    .peer_certificates()
                    .and_then(|chain| chain.first());
                let peer = names.iter().find(|(der, _)| Some(der) == peer);
                let peer = peer.map_or("nobody", |(_, name)| name);
                let answer = service_fn(move |request| {
                    let ca_pem = ca_pem.clone();
                    async move { Ok::<_, Infallible>(answer(request, peer, &ca_pem)) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server
                    .serve_connection_with_upgrades(TokioIo::new(tls), answer)
                    .await;
            });
        }
    });
    Server {
        ca,
        alice,
        bob,
        port,
        connections,
    }
}

fn private_key(pair: &Pair) -> PrivateKeyDer<'static> {
    use rustls_pki_types::pem::PemObject;
    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap()
}

fn answer(mut request: Request<Incoming>, peer: &str, ca_pem: &str) -> Response<Full<Bytes>> {
    let header = |name| {
        let value = request.headers().get(name);
        value
            .map_or("none", |value: &http::HeaderValue| value.to_str().unwrap())
            .to_owned()
    };
    match request.uri().path() {
        "/ca" => Response::new(Full::from(ca_pem.to_owned())),
        "/tunnel" => {
            assert_eq!(header("upgrade"), "echo");
            let upgraded = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut stream = TokioIo::new(upgraded.await.unwrap());
                let mut bytes = [0; 5];
                stream.read_exact(&mut bytes).await.unwrap();
                stream.write_all(&bytes).await.unwrap();
                stream.flush().await.unwrap();
            });
            Response::builder()
                .status(StatusCode::SWITCHING_PROTOCOLS)
                .header("connection", "Upgrade")
                .header("upgrade", "echo")
                .body(Full::default())
                .unwrap()
        }
        "/closed" => Response::builder()
            .status(StatusCode::FORBIDDEN)
            .body(Full::from(
                r#"{"kind":"Status","message":"no tunnel for you"}"#,
            ))
            .unwrap(),
        _ => {
            let (token, version) = (header("authorization"), request.version());
            let acting = match header("impersonate-user").as_str() {
                "none" => String::new(),
                user => format!(" as {user}"),
            };
            Response::new(Full::from(format!("{peer} {token} {version:?}{acting}")))
        }
    }
}

impl Server {
    fn endpoint(&self, identity: Identity) -> Endpoint {
        let trust = Trust::from_pem(self.ca.pem().as_bytes()).unwrap();
        Endpoint::new(&format!("https://localhost:{}", self.port), trust, identity).unwrap()
    }
}

fn identity_of(pair: &Pair) -> Identity {
    Identity::from_certificate(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap()
}

async fn who_am_i(client: &Client) -> String {
    let request = Request::get("/whoami").body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

#[tokio::test]
async fn one_connection_carries_all_and_a_new_certificate_counts_at_once() {
    let server = serve().await;
    let identity = identity_of(&server.alice);
    let client = client(&server.endpoint(identity.clone()));
    for _ in 0..3 {
        assert_eq!(who_am_i(&client).await, "alice none HTTP/2.0");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let bob = &server.bob;
    identity
        .set_certificate(bob.certificate.as_bytes(), bob.key.as_bytes())
        .unwrap();
    assert_eq!(who_am_i(&client).await, "bob none HTTP/2.0");
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_token_comes_and_goes() {
    let server = serve().await;
    let identity = Identity::from_token("abcdef.secret").unwrap();
    let client = client(&server.endpoint(identity.clone()));
    assert_eq!(
        who_am_i(&client).await,
        "nobody Bearer abcdef.secret HTTP/2.0"
    );
    identity.set_token(None).unwrap();
    assert_eq!(who_am_i(&client).await, "nobody none HTTP/2.0");
    assert!(matches!(
        identity.set_token(Some("a\nb")),
        Err(IdentityError::Token)
    ));
    assert!(!format!("{identity:?}").contains("secret"));
}

#[tokio::test]
async fn one_acts_as_another() {
    let server = serve().await;
    let endpoint = server.endpoint(identity_of(&server.alice));
    let carol = endpoint.clone().acting_as("carol").unwrap();
    assert_eq!(
        who_am_i(&client(&carol)).await,
        "alice none HTTP/2.0 as carol"
    );
    let refused = endpoint.acting_as("car\nol");
    assert!(matches!(refused, Err(EndpointError::User { .. })));
}

#[tokio::test]
async fn another_authority_is_not_believed() {
    let server = serve().await;
    let trust = Trust::from_pem(authority().pem().as_bytes()).unwrap();
    let url = format!("https://localhost:{}", server.port);
    let endpoint = Endpoint::new(&url, trust, Identity::anonymous()).unwrap();
    let error = dial(&endpoint, &[b"h2"]).await.unwrap_err();
    assert!(matches!(error, DialError::Tls { .. }), "{error:?}");
    let client = client(&endpoint);
    let request = Request::get("/whoami").body(Vec::new()).unwrap();
    assert!(client.request_text(request).await.is_err());
}

#[tokio::test]
async fn the_name_in_the_certificate_counts() {
    let server = serve().await;
    let trust = Trust::from_pem(server.ca.pem().as_bytes()).unwrap();
    let url = format!("https://127.0.0.1:{}", server.port);
    let endpoint = Endpoint::new(&url, trust, Identity::anonymous()).unwrap();
    assert!(matches!(
        dial(&endpoint, &[]).await,
        Err(DialError::Tls { .. })
    ));
    let named = endpoint.with_server_name("localhost");
    assert!(dial(&named, &[]).await.is_ok());
}

#[tokio::test]
async fn the_first_contact_pins_the_authority_by_its_hash() {
    let server = serve().await;
    let trust = Trust::from_pem(authority().pem().as_bytes()).unwrap();
    let url = format!("https://localhost:{}", server.port);
    let endpoint = Endpoint::new(&url, trust, Identity::from_token("t").unwrap()).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, server.ca.der());
    let hash: [u8; 32] = digest.as_ref().try_into().unwrap();
    let pem = fetch_pinned_ca(&endpoint, "/ca", &hash).await.unwrap();
    let pinned = Endpoint::new(
        &url,
        Trust::from_pem(pem.as_bytes()).unwrap(),
        Identity::default(),
    );
    assert!(dial(&pinned.unwrap(), &[]).await.is_ok());
    let other = fetch_pinned_ca(&endpoint, "/ca", &[7; 32])
        .await
        .unwrap_err();
    assert!(matches!(other, EnrolError::OtherAuthority));
}

#[tokio::test]
async fn an_upgrade_gives_a_raw_stream() {
    let server = serve().await;
    let endpoint = server.endpoint(identity_of(&server.alice));
    let mut tunnel = upgrade::open(&endpoint, "/tunnel", "echo").await.unwrap();
    tunnel.write_all(b"hello").await.unwrap();
    tunnel.flush().await.unwrap();
    let mut bytes = [0; 5];
    tunnel.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");
    let refused = upgrade::open(&endpoint, "/closed", "echo")
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the server answered 403 Forbidden: no tunnel for you"
    );
}

#[tokio::test]
async fn a_kubeconfig_is_all_it_takes() {
    let server = serve().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), server.ca.pem()).unwrap();
    let text = format!(
        "apiVersion: v1
kind: Config
current-context: main
contexts:
- {{name: main, context: {{cluster: edge, user: alice, namespace: shop}}}}
- {{name: lost, context: {{cluster: edge, user: nobody}}}}
- {{name: plugin, context: {{cluster: edge, user: plugin}}}}
clusters:
- {{name: edge, cluster: {{server: 'https://localhost:{}', certificate-authority: ca.pem}}}}
users:
- {{name: alice, user: {{client-certificate-data: {}, client-key-data: {}}}}}
- {{name: plugin, user: {{exec: {{command: aws}}}}}}
",
        server.port,
        BASE64_STANDARD.encode(&server.alice.certificate),
        BASE64_STANDARD.encode(&server.alice.key),
    );
    let path = folder.path().join("config");
    std::fs::write(&path, &text).unwrap();
    let loaded = kubeconfig::load(&path, None).unwrap();
    assert_eq!(loaded.namespace, "shop");
    let client = client_in(&loaded.endpoint, &loaded.namespace);
    assert_eq!(who_am_i(&client).await, "alice none HTTP/2.0");
    let error = |context| kubeconfig::parse(&text, folder.path(), Some(context)).unwrap_err();
    assert_eq!(
        error("lost").to_string(),
        "the kubeconfig has no user named \"nobody\""
    );
    assert_eq!(error("plugin").to_string(), "exec is not supported");
    assert_eq!(
        error("none").to_string(),
        "the kubeconfig has no context named \"none\""
    );
}

#[test]
fn a_url_that_is_none_is_refused_by_name() {
    for url in ["ftp://host", "host:6443", "https://", "https:// x"] {
        assert!(
            Endpoint::new(url, Trust::Anybody, Identity::anonymous()).is_err(),
            "{url}"
        );
    }
    let six = Endpoint::new("https://[::1]:6443/", Trust::Anybody, Identity::anonymous()).unwrap();
    assert_eq!((six.host(), six.port()), ("::1", 6443));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let timeouts = Timeouts {
        connect: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let url = format!("https://127.0.0.1:{port}");
    let endpoint = Endpoint::new(&url, Trust::Anybody, Identity::anonymous()).unwrap();
    let error = dial(&endpoint.with_timeouts(timeouts), &[])
        .await
        .unwrap_err();
    assert!(matches!(error, DialError::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_said() {
    let url = "https://no-such-host.invalid:1";
    let endpoint = Endpoint::new(url, Trust::Anybody, Identity::anonymous()).unwrap();
    let error = dial(&endpoint, &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot resolve no-such-host.invalid");
}
