//! A server with TLS that believes this one alone, in a pod whose node dials for it: what it is asked,
//! and what comes back.

use super::*;
use crate::pki::authority::{Authority, Leaf, Usage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Version;
use http::header::{AUTHORIZATION, CONNECTION, UPGRADE};
use http_body::Frame;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioExecutor;
use rcgen::SanType;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const PATIENCE: Duration = Duration::from_secs(60);
const POD_ADDRESS: &str = "10.0.0.7";

struct Site {
    aggregation: Arc<Aggregation>,
    shutdown: CancellationToken,
    remote: Arc<Remote>,
    view: Arc<Objects>,
    _directory: tempfile::TempDir,
}

#[allow(clippy::disallowed_methods)] // TLS reads the same clock.
fn now() -> Timestamp {
    Timestamp::now()
}

/// Echoes what it was asked; a watch has no end; what upgrades echoes bytes.
async fn answer(mut request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    if request.headers().contains_key(UPGRADE) {
        let on = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(on.await.unwrap());
            let mut word = [0; 5];
            stream.read_exact(&mut word).await.unwrap();
            stream.write_all(&word).await.unwrap();
        });
        let user = request.headers()["x-remote-user"].clone();
        let switched = Response::builder()
            .status(101)
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "word")
            .header("to", user);
        return Ok(switched.body(respond::full("")).unwrap());
    }
    if request.uri().query() == Some("watch=true") {
        let first = futures::stream::iter([Ok(Frame::data(Bytes::from("event\n")))]);
        let body = StreamBody::new(first.chain(futures::stream::pending()));
        return Ok(Response::new(body.boxed_unsync()));
    }
    let told = match path.as_str() {
        "/openapi/v3" => json!({ "paths": { "apis/shop.example.test/v1": {
            "serverRelativeURL": "/openapi/v3/apis/shop.example.test/v1?hash=1",
        } } }),
        "/apis/shop.example.test/v1" => json!({ "resources": [{ "name": "carts" }] }),
        _ => {
            let headers = request.headers().iter();
            let mut lines: Vec<String> = headers
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            lines.sort();
            let line = format!("{} {}", request.method(), request.uri());
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            json!({ "line": line, "headers": lines, "body": body })
        }
    };
    Ok(Response::new(respond::full(told.to_string())))
}

/// Whoever has no certificate of the front proxy is sent away.
async fn listen(own: &Authority, front_proxy: &FrontProxy) -> SocketAddr {
    let names = [SanType::DnsName("api.shop.svc".try_into().unwrap())];
    let leaf = Leaf {
        common_name: "api",
        organizations: &[],
        names: &names,
        usage: Usage::Server,
        life: Duration::from_secs(3600),
    };
    let issued = own.issue(&leaf, now()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(front_proxy.ca_der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let key = PrivatePkcs8KeyDer::from(issued.key_der.clone());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![issued.certificate], key.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let served = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .with_upgrades();
                drop(served.await);
            });
        }
    });
    address
}

/// A node that dials the listener whatever it is asked for.
async fn node(tunnels: &Tunnels, listener: SocketAddr) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let service = service_fn(move |request: Request<Incoming>| async move {
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(request.uri().to_string(), format!("{POD_ADDRESS}:8443"));
        let mut there = TcpStream::connect(listener).await.unwrap();
        tokio::spawn(async move {
            let here = hyper::upgrade::on(request).await.unwrap();
            drop(tokio::io::copy_bidirectional(&mut TokioIo::new(here), &mut there).await);
        });
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    tokio::spawn(
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(far), service),
    );
    let executor = TokioExecutor::new();
    let shaken = hyper::client::conn::http2::handshake(executor, TokioIo::new(near)).await;
    let (sender, connection) = shaken.unwrap();
    tokio::spawn(connection);
    tunnels.add("n1", sender);
}

fn endpoints(is_ready: bool) -> Value {
    json!({
        "metadata": {
            "name": "a", "namespace": "shop",
            "labels": { "kubernetes.io/service-name": "api" },
        },
        "ports": [{ "name": "", "port": 8443 }],
        "endpoints": [{
            "addresses": [POD_ADDRESS], "conditions": { "ready": is_ready },
            "targetRef": { "kind": "Pod", "name": "p" },
        }],
    })
}

impl Site {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let own = Authority::open(&directory.path().join("own"), now()).unwrap();
        let bundle = own.certificate_pem().to_owned();
        Self::trusting(directory, &own, &bundle).await
    }

    async fn trusting(directory: tempfile::TempDir, own: &Authority, bundle: &str) -> Self {
        let path: &Path = directory.path();
        let front_proxy = Arc::new(FrontProxy::open(path, now()).unwrap());
        let tunnels = Tunnels::new(CancellationToken::new());
        let listener = listen(own, &front_proxy).await;
        node(&tunnels, listener).await;
        let service = json!({
            "metadata": { "name": "api", "namespace": "shop" },
            "spec": { "type": "ClusterIP", "ports": [{ "name": "", "port": 443 }] },
        });
        let pod = json!({
            "metadata": { "name": "p", "namespace": "shop" }, "spec": { "nodeName": "n1" },
            "status": { "podIPs": [{ "ip": POD_ADDRESS }] },
        });
        let view = Objects::new([
            ("services", service),
            ("endpointslices", endpoints(true)),
            ("pods", pod),
        ]);
        let service = json!({ "namespace": "shop", "name": "api", "port": 443 });
        let spec = json!({ "service": service, "caBundle": STANDARD.encode(bundle) });
        let object = Available::passed().put(&api_service("v1", spec), "T");
        let remote = Arc::new(Remote::of(&object.unwrap(), None).unwrap());
        let shutdown = CancellationToken::new();
        let aggregation = Aggregation::new(view.clone(), tunnels, front_proxy, shutdown.clone());
        aggregation.put(vec![Arc::clone(&remote)]);
        Self {
            aggregation: Arc::new(aggregation),
            shutdown,
            remote,
            view,
            _directory: directory,
        }
    }

    async fn pass(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or(""));
        let info = RequestInfo::of(&parts.method, &parts.uri, &query);
        let remote = self
            .aggregation
            .find(&info)
            .expect("it is another server's");
        let mut user = User::named("jane");
        user.groups = vec!["g".to_owned()];
        let passed = self
            .aggregation
            .pass(&remote, parts, body, &info, &user, now());
        passed.await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = Request::get(path).body(respond::full("")).unwrap();
        let answer = self.pass(request).await;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn a_request_is_passed_on_in_the_name_of_its_user() {
    let site = Site::start().await;
    let request = Request::post("https://us/apis/shop.example.test/v1/carts?a=b")
        .version(Version::HTTP_2)
        .header(AUTHORIZATION, "Bearer secret")
        .header("impersonate-user", "root")
        .header("x-remote-user", "root")
        .header("x-remote-extra-scopes", "all")
        .header(CONNECTION, "x-remote-group, close")
        .header("x-remote-group", "system:masters")
        .header("content-length", "4")
        .header("other", "kept")
        .body(respond::full("body"))
        .unwrap();
    let answer = site.pass(request).await;
    assert_eq!(answer.status(), 200);
    let told = answer.into_body().collect().await.unwrap().to_bytes();
    let told: Value = serde_json::from_slice(&told).unwrap();
    expect![[r#"
        {
          "body": "body",
          "headers": [
            "content-length: 4",
            "host: api.shop.svc:443",
            "other: kept",
            "x-remote-group: g",
            "x-remote-user: jane"
          ],
          "line": "POST /apis/shop.example.test/v1/carts?a=b"
        }"#]]
    .assert_eq(&format!("{told:#}"));
}

#[tokio::test]
async fn a_watch_comes_as_it_is_made_and_ends_with_this_server() {
    let site = Site::start().await;
    let request = Request::get("/apis/shop.example.test/v1/carts?watch=true");
    let answer = site.pass(request.body(respond::full("")).unwrap()).await;
    let mut body = answer.into_body();
    let read = tokio::time::timeout(PATIENCE, body.frame()).await.unwrap();
    assert_eq!(read.unwrap().unwrap().into_data().unwrap(), "event\n");
    site.shutdown.cancel();
    let read = tokio::time::timeout(PATIENCE, body.frame()).await.unwrap();
    assert!(read.is_none());
    // An answer that has an end comes whole, or its client would take a part of it for all.
    let (code, told) = site.get("/apis/shop.example.test/v1/carts").await;
    assert_eq!(code, 200);
    assert!(
        told.contains("GET /apis/shop.example.test/v1/carts"),
        "{told}"
    );
}

/// Serves one connection as this server does, and upgrades it from the other end.
async fn upgraded(site: Arc<Site>) -> (Response<Incoming>, TokioIo<Upgraded>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let service = service_fn(move |request: Request<Incoming>| {
        let site = Arc::clone(&site);
        async move {
            let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            Ok::<_, Infallible>(site.pass(request).await)
        }
    });
    tokio::spawn(
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades(),
    );
    let (mut sender, connection) = http1::handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let request = Request::get("/apis/shop.example.test/v1/pods/a/exec")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "word")
        .header("x-remote-user", "root")
        .body(respond::full(""))
        .unwrap();
    let mut answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 101);
    let stream = hyper::upgrade::on(&mut answer).await.unwrap();
    (answer, TokioIo::new(stream))
}

#[tokio::test]
async fn another_protocol_is_passed_through() {
    let (answer, mut stream) = upgraded(Arc::new(Site::start().await)).await;
    assert_eq!(answer.headers()["to"], "jane");
    stream.write_all(b"hello").await.unwrap();
    let mut word = [0; 5];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut word));
    read.await.unwrap().unwrap();
    assert_eq!(&word, b"hello");
}

#[tokio::test]
async fn nobody_makes_requests_of_his_own_on_the_connection() {
    let site = Site::start().await;
    let upgrading = |path: &str| {
        Request::get(path)
            .header(CONNECTION, "upgrade, http2-settings")
            .header(UPGRADE, "h2c")
            .header("http2-settings", "AAMAAABk")
            .body(respond::full(""))
            .unwrap()
    };
    let answer = site
        .pass(upgrading("/apis/shop.example.test/v1/carts"))
        .await;
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let told = String::from_utf8(body.to_vec()).unwrap();
    assert!(
        !told.contains("h2c") && !told.contains("http2-settings"),
        "{told}"
    );
    // A document that is asked for with rights of this server is read, and nothing else.
    let path = "/openapi/v3/apis/shop.example.test/v1";
    site.remote.tell(|told| told.schema = Some(path.to_owned()));
    let found = |method: Method| {
        let info = RequestInfo::of(&method, &path.parse().unwrap(), &Query::parse(""));
        site.aggregation.find(&info).is_some()
    };
    assert!(found(Method::GET) && found(Method::HEAD));
    assert!(!found(Method::POST) && !found(Method::DELETE));
}

#[tokio::test]
async fn a_server_is_looked_at_and_tells_what_it_has() {
    let site = Site::start().await;
    let checked = site.aggregation.check(&site.remote, now()).await;
    assert_eq!(checked, Available::passed());
    let schema = site.aggregation.schema(&site.remote, now()).await;
    let schema = schema.unwrap();
    assert_eq!(schema, "/openapi/v3/apis/shop.example.test/v1?hash=1");
    assert!(site.remote.told().resources.is_some());
    site.remote.tell(|told| told.schema = Some(schema.clone()));
    // No user of this cluster has a right to it there.
    let (code, told) = site.get(&schema).await;
    assert_eq!(code, 200);
    assert!(
        told.contains("x-remote-user: system:kube-aggregator"),
        "{told}"
    );
}

#[tokio::test]
async fn what_stands_in_the_way_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let [own, other] =
        ["own", "other"].map(|name| Authority::open(&directory.path().join(name), now()).unwrap());
    let bundle = other.certificate_pem().to_owned();
    let site = Site::trusting(directory, &own, &bundle).await;
    let path = "/apis/shop.example.test/v1/carts";
    let untrusted = "tls: failed to verify certificate: x509: certificate signed by unknown \
                     authority";
    assert_eq!(site.get(path).await, (503, format!("{untrusted}\n")));
    let url = "https://api.shop.svc:443/apis/shop.example.test/v1";
    let told = format!("failing or missing response from {url}: Get \"{url}\": {untrusted}");
    assert_eq!(
        site.aggregation.check(&site.remote, now()).await,
        Available::undiscovered(told)
    );
    site.view.put("endpointslices", endpoints(false));
    let unavailable = (503, "service unavailable\n".to_owned());
    assert_eq!(site.get(path).await, unavailable);
    let service = json!({ "namespace": "shop", "name": "api", "port": 443 });
    let object = api_service("v1", json!({ "service": service }));
    let remote = Remote::of(&object, None).unwrap();
    site.aggregation.put(vec![Arc::new(remote)]);
    site.view.put("endpointslices", endpoints(true));
    assert_eq!(site.get(path).await, unavailable);
}
