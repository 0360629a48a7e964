//! Connections of clients of all kinds, in order or not.

use crate::handler::site::{NOW, Site};
use futures::future::BoxFuture;
use jiff::Timestamp;
use rcgen::{DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub type Certificate = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// The server's certificate is judged by the server's clock.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let second = u64::try_from(now()).unwrap();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(second)))
    }
}

/// Of the site, in seconds.
pub fn now() -> i64 {
    NOW.parse::<Timestamp>().unwrap().as_second()
}

pub async fn tls_as(site: &Site, shown: Option<Certificate>) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(site.ca_pem().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_details(provider, Arc::new(Clock))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        Some((certificate, key)) => config
            .with_client_auth_cert(vec![certificate], key)
            .unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::IpAddress(site.address().ip().into());
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, tcp(site).await).await.unwrap()
}

pub async fn tls(site: &Site) -> TlsStream<TcpStream> {
    tls_as(site, None).await
}

pub async fn tcp(site: &Site) -> TcpStream {
    TcpStream::connect(site.address()).await.unwrap()
}

/// Everything until the server ends the connection, by whichever way.
pub async fn rest(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        all.extend_from_slice(&part[..count]);
    }
    all
}

/// Status and body of one GET on a connection of its own.
pub async fn ask(mut stream: TlsStream<TcpStream>, path: &str, headers: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
    // The server may have heard enough before everything is written.
    drop(stream.write_all(request.as_bytes()).await);
    let answer = String::from_utf8(rest(stream).await).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let code = head.split(' ').nth(1).unwrap_or_default();
    (code.parse().unwrap_or_default(), body.to_owned())
}

pub fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

/// A certificate of the CA for a client, or one that another made, from and to so many seconds
/// from now.
pub fn certificate(
    authority: Option<&Site>,
    (name, group): (&str, &str),
    (from, to): (i64, i64),
) -> Certificate {
    let key = KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::CommonName, name);
    subject.push(DnType::OrganizationName, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let at = |seconds: i64| {
        let since = Duration::from_secs(u64::try_from(now() + seconds).unwrap());
        rcgen::date_time_ymd(1970, 1, 1) + since
    };
    (params.not_before, params.not_after) = (at(from), at(to));
    let certificate = match authority {
        None => params.self_signed(&key),
        Some(site) => {
            let own = std::fs::read_to_string(site.directory.path().join("pki/ca.key")).unwrap();
            let own = KeyPair::from_pem(&own).unwrap();
            let issuer = rcgen::Issuer::from_ca_cert_pem(&site.ca_pem(), own).unwrap();
            params.signed_by(&key, &issuer)
        }
    };
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    (certificate.unwrap().der().clone(), key)
}

/// What a connection says in the end.
pub type End = BoxFuture<'static, Vec<u8>>;

/// Connections that say half of something and then wait, named.
pub async fn stalled(site: &Site, posted: &str, token: &str) -> Vec<(&'static str, End)> {
    let mut all: Vec<(&'static str, End)> = Vec::new();
    for (name, said) in [
        ("nothing at all", &b""[..]),
        ("half of a handshake", b"\x16\x03\x01\x02\x00\x01\x00"),
    ] {
        let mut stream = tcp(site).await;
        stream.write_all(said).await.unwrap();
        all.push((name, Box::pin(rest(stream))));
    }
    let body = format!(
        "POST {posted} HTTP/1.1\r\nhost: a\r\n{}content-type: application/json\r\n\
         content-length: 1000\r\n\r\n{{\"metadata\":",
        bearer(token)
    );
    for (name, said) in [
        ("nothing after the handshake", ""),
        ("half of a method", "P"),
        (
            "half of the headers",
            "GET /version HTTP/1.1\r\nhost: a\r\nx-a",
        ),
        ("half of the preface of HTTP/2", "PRI * HTTP/2"),
        (
            "nothing after that preface",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ),
        (
            "nothing after an answer",
            "GET /version HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        ("half of a body", &body),
    ] {
        let mut stream = tls(site).await;
        stream.write_all(said.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        all.push((name, Box::pin(rest(stream))));
    }
    all
}
