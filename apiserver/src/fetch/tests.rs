//! A server over TLS in this process, and what is fetched from it.

use super::*;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Answers = parking_lot::Mutex<BTreeMap<String, (u16, String)>>;

/// Answers what it is told to; a redirect has its place as body.
#[derive(Debug)]
pub struct Site {
    pub url: String,
    pub address: SocketAddr,
    pub authority_pem: String,
    answers: Arc<Answers>,
    pub asked: Arc<AtomicUsize>,
}

impl Site {
    pub async fn start() -> Self {
        Self::start_as(CertificateParams::new(["localhost".to_owned()]).unwrap()).await
    }

    /// With this certificate, signed by itself.
    async fn start_as(params: CertificateParams) -> Self {
        let signing_key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&signing_key).unwrap();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let site = Self {
            url: format!("https://localhost:{}", address.port()),
            address,
            authority_pem: certificate.pem(),
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
    site.answer("/realms/one/moved", 302, "../two/keys");
    site.answer("/realms/two/keys", 200, "there");
    let elsewhere = site.url.strip_prefix("https:").unwrap();
    site.answer("/across", 302, format!("{elsewhere}/realms/one/moved"));
    site.answer("/plain", 302, format!("http:{elsewhere}/keys"));
    site.answer("/round", 302, "/round");
    site.answer("/huge", 200, "x".repeat(BODY_BYTES_MAX + 1));
    assert_eq!(site.fetch("/keys").await.unwrap(), "here");
    assert_eq!(site.fetch("/moved").await.unwrap(), "here");
    assert_eq!(site.fetch("/realms/one/moved").await.unwrap(), "there");
    assert_eq!(site.fetch("/across").await.unwrap(), "there");
    let error = |path: &'static str| async {
        let error = site.fetch(path).await.unwrap_err().to_string();
        error.replace(&site.url, "URL")
    };
    assert_eq!(error("/none").await, "Get \"URL/none\": 404 Not Found");
    let plain = error("/plain").await;
    assert!(plain.ends_with("is no https URL"), "{plain}");
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

/// What `openssl req -x509` makes: it is its own authority, and the server shows it as its own.
fn authority_for(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

#[tokio::test]
async fn a_named_certificate_serves_as_itself_under_its_name_and_in_its_time() {
    let fetched = |params| async {
        let site = Site::start_as(params).await;
        site.answer("/keys", 200, "here");
        let answer = site.fetch("/keys").await;
        answer.map_err(|error| error.to_string().replace(&site.url, "URL"))
    };
    assert_eq!(fetched(authority_for("localhost")).await.unwrap(), "here");
    let other = fetched(authority_for("elsewhere")).await.unwrap_err();
    assert!(other.contains("certificate not valid for name"), "{other}");
    let mut ended = authority_for("localhost");
    ended.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let ended = fetched(ended).await.unwrap_err();
    assert!(ended.contains("certificate expired"), "{ended}");
    let mut early = authority_for("localhost");
    early.not_before = rcgen::date_time_ymd(4000, 1, 1);
    let early = fetched(early).await.unwrap_err();
    assert!(early.contains("certificate not valid yet"), "{early}");
    let (site, other) = (
        Site::start_as(authority_for("localhost")).await,
        Site::start_as(authority_for("localhost")).await,
    );
    let tls = trusting(Some(&other.authority_pem)).unwrap();
    get(&tls, &site.url).await.unwrap_err();
}
