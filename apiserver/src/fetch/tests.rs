//! A server over TLS in this process, and what is fetched from it.

use super::*;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Answers = parking_lot::Mutex<BTreeMap<String, (u16, String)>>;

/// Answers what it is told to; a redirect has its place as body.
#[derive(Debug)]
pub struct Site {
    pub url: String,
    pub authority_pem: String,
    answers: Arc<Answers>,
    pub asked: Arc<AtomicUsize>,
}

impl Site {
    pub async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self {
            url: format!(
                "https://localhost:{}",
                listener.local_addr().unwrap().port()
            ),
            authority_pem: made.cert.pem(),
            answers: Arc::default(),
            asked: Arc::default(),
        };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (answers, asked) = (Arc::clone(&site.answers), Arc::clone(&site.asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
                let accepting = acceptor.accept(stream);
                tokio::spawn(async move {
                    let Ok(stream) = accepting.await else { return };
                    let service = service_fn(move |request: Request<Incoming>| {
                        asked.fetch_add(1, Ordering::SeqCst);
                        let answer = answers.lock().get(request.uri().path()).cloned();
                        let (code, body) = answer.unwrap_or((404, String::new()));
                        let response = http::Response::builder()
                            .status(code)
                            .header(LOCATION, if code == 302 { body.as_str() } else { "" })
                            .body(Full::new(Bytes::from(body.clone())));
                        async move { Ok::<_, Infallible>(response.unwrap()) }
                    });
                    let serving = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    drop(serving.await);
                });
            }
        });
        site
    }

    pub fn answer(&self, path: &str, code: u16, body: impl Into<String>) {
        self.answers
            .lock()
            .insert(path.to_owned(), (code, body.into()));
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn fetch(&self, path: &str) -> Result<Bytes, FetchError> {
        let tls = trusting(Some(&self.authority_pem)).unwrap();
        get(&tls, &format!("{}{path}", self.url)).await
    }
}

#[tokio::test]
async fn documents_are_fetched_through_redirects_and_bounds() {
    let site = Site::start().await;
    site.answer("/keys", 200, "here");
    site.answer("/moved", 302, "/keys");
    site.answer("/round", 302, "/round");
    site.answer("/huge", 200, "x".repeat(BODY_BYTES_MAX + 1));
    assert_eq!(site.fetch("/keys").await.unwrap(), "here");
    assert_eq!(site.fetch("/moved").await.unwrap(), "here");
    let error = |path: &'static str| async {
        let error = site.fetch(path).await.unwrap_err().to_string();
        error.replace(&site.url, "URL")
    };
    assert_eq!(error("/none").await, "Get \"URL/none\": 404 Not Found");
    assert_eq!(
        error("/round").await,
        "Get \"URL/round\": stopped after 5 redirects"
    );
    assert_eq!(
        error("/huge").await,
        "Get \"URL/huge\": the answer cannot be read or is larger than 1048576 bytes"
    );
}

#[tokio::test]
async fn only_https_and_only_whom_one_trusts() {
    let (site, other) = (Site::start().await, Site::start().await);
    let tls = trusting(Some(&other.authority_pem)).unwrap();
    let error = get(&tls, &site.url).await.unwrap_err();
    let is_tls = matches!(
        &error,
        FetchError::Dial {
            source: DialError::Tls(_),
            ..
        }
    );
    assert!(is_tls, "{error}");
    for url in ["http://localhost/", "ftp://x", "/path", ""] {
        let error = get(&tls, url).await.unwrap_err();
        assert!(matches!(error, FetchError::Url(_)), "{error}");
    }
    assert!(matches!(
        trusting(Some("no")),
        Err(TrustError::NoCertificates)
    ));
}
