//! A webhook in this process, over TLS: what is sent to it, and what comes of its answers.

use super::*;
use crate::view::tests::Objects;
use base64::Engine;
use expect_test::expect;
use http::Response;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::json;
use std::sync::atomic::AtomicUsize;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

struct Site {
    port: u16,
    ca_bundle: String,
    connections: Arc<AtomicUsize>,
    reviews: Arc<AtomicUsize>,
}

type Answer = Result<Response<Full<Bytes>>, BrokenOff>;

#[derive(Debug, thiserror::Error)]
#[error("the server breaks off")]
struct BrokenOff;

/// Answers by the path: `/echo` with what was asked, `/never` not at all, `/last` and then it
/// closes the connection, `/cut` once, and of later ones it reads the review and breaks off.
async fn answer(request: Request<Incoming>, reviews: Arc<AtomicUsize>) -> Answer {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let earlier = reviews.fetch_add(1, Ordering::SeqCst);
    let text = |name| parts.headers.get(name).unwrap().to_str().unwrap();
    let response = Response::builder();
    Ok(match parts.uri.path() {
        "/never" => std::future::pending().await,
        "/cut" if earlier > 0 => return Err(BrokenOff),
        "/huge" => response.body(Full::new(vec![b' '; ANSWER_BYTES_MAX + 1].into())),
        "/last" => response.header("connection", "close").body(Full::new(body)),
        "/none" => response.status(404).body(Full::default()),
        _ => {
            let query = parts.uri.query().unwrap_or("");
            let (host, agent) = (text(HOST), text(USER_AGENT));
            let kind = text(CONTENT_TYPE);
            let seen = format!("{query} {host} {agent} {kind} {}", body.len());
            response.body(Full::new(seen.into()))
        }
    }
    .unwrap())
}

impl Site {
    async fn start() -> Self {
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let signing_key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&signing_key).unwrap();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            port: listener.local_addr().unwrap().port(),
            ca_bundle: base64::engine::general_purpose::STANDARD.encode(certificate.pem()),
            connections: Arc::default(),
            reviews: Arc::default(),
        };
        let connections = Arc::clone(&site.connections);
        let reviews = Arc::clone(&site.reviews);
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, connections) = (acceptor.clone(), Arc::clone(&connections));
                let reviews = Arc::clone(&reviews);
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    connections.fetch_add(1, Ordering::SeqCst);
                    let service = service_fn(move |request| answer(request, Arc::clone(&reviews)));
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    drop(served.await);
                });
            }
        });
        site
    }

    fn config(&self, path: &str) -> ClientConfig {
        let url = format!("https://localhost:{}{path}", self.port);
        let config = json!({ "url": url, "caBundle": self.ca_bundle });
        ClientConfig::read(&config).unwrap()
    }

    /// The answer, or why there is none, with the port left out.
    async fn post(&self, caller: &Caller, path: &str, within: Duration) -> String {
        let posted = caller.post(&self.config(path), "{}".into(), within).await;
        let told = match posted {
            Ok(body) => String::from_utf8(body.to_vec()).unwrap(),
            Err(error) => error.to_string(),
        };
        told.replace(&self.port.to_string(), "PORT")
    }
}

fn caller() -> Caller {
    let tunnels = Tunnels::new(CancellationToken::new());
    Caller::new(Objects::new([]), tunnels)
}

#[tokio::test]
async fn a_webhook_is_asked_over_connections_that_are_kept() {
    let (site, caller) = (Site::start().await, caller());
    for _ in 0..3 {
        let told = site.post(&caller, "/echo", PATIENCE).await;
        expect!["timeout=60s localhost:PORT kube-apiserver-admission application/json 2"]
            .assert_eq(&told);
    }
    assert_eq!(site.connections.load(Ordering::SeqCst), 1);
    let all = (0..4).map(|_| site.post(&caller, "/echo", PATIENCE));
    futures::future::join_all(all).await;
    assert!(site.connections.load(Ordering::SeqCst) <= 4);
}

#[tokio::test]
async fn a_connection_that_was_closed_is_replaced() {
    let (site, caller) = (Site::start().await, caller());
    for _ in 0..3 {
        assert_eq!(site.post(&caller, "/last", PATIENCE).await, "{}");
    }
    assert_eq!(site.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_review_that_was_sent_is_not_sent_again() {
    let (site, caller) = (Site::start().await, caller());
    site.post(&caller, "/cut", PATIENCE).await;
    let told = site.post(&caller, "/cut", PATIENCE).await;
    expect![[r#"Post "https://localhost:PORT/cut?timeout=60s": EOF"#]].assert_eq(&told);
    let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
    assert_eq!((count(&site.reviews), count(&site.connections)), (2, 1));
}

#[tokio::test]
async fn what_goes_wrong_is_told_in_upstreams_words() {
    let (site, caller) = (Site::start().await, caller());
    let short = Duration::from_millis(300);
    expect![[r#"Post "https://localhost:PORT/never?timeout=1s": context deadline exceeded"#]]
        .assert_eq(&site.post(&caller, "/never", short).await);
    expect![[r#"Post "https://localhost:PORT/huge?timeout=60s": unexpected error when reading response body. Please retry. Original error: length limit exceeded"#]]
        .assert_eq(&site.post(&caller, "/huge", PATIENCE).await);
    expect!["the server could not find the requested resource"]
        .assert_eq(&site.post(&caller, "/none", PATIENCE).await);
    let other = Site::start().await;
    let url = format!("https://localhost:{}/echo", site.port);
    let config = json!({ "url": url, "caBundle": other.ca_bundle });
    let config = ClientConfig::read(&config).unwrap();
    let error = caller.post(&config, "{}".into(), PATIENCE).await;
    let told = error.unwrap_err().to_string();
    expect![[r#"Post "https://localhost:PORT/echo?timeout=60s": tls: failed to verify certificate: x509: certificate signed by unknown authority"#]]
        .assert_eq(&told.replace(&site.port.to_string(), "PORT"));
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", closed.local_addr().unwrap().port());
    drop(closed);
    let config = json!({ "url": url, "caBundle": other.ca_bundle });
    let config = ClientConfig::read(&config).unwrap();
    let error = caller.post(&config, "{}".into(), PATIENCE).await;
    let told = error.unwrap_err().to_string();
    assert!(told.ends_with("connection refused"), "{told}");
}

#[tokio::test]
async fn clients_are_kept_up_to_a_bound() {
    let (site, caller) = (Site::start().await, caller());
    for place in 0..=CLIENTS_MAX {
        caller.client(&site.config(&format!("/{place}"))).unwrap();
    }
    let clients = caller.clients.lock();
    assert_eq!(clients.len(), CLIENTS_MAX);
    assert!(!clients.contains_key(&site.config("/0")));
}
