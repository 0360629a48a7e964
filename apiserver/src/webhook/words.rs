//! What goes wrong with a connection, in the words of Go's `net`, `crypto/tls` and `net/http`,
//! which users look for.

use crate::fetch::DialError;
use rustls::CertificateError;
use std::error::Error as _;
use std::io::{self, ErrorKind};

const UNVERIFIED: &str = "tls: failed to verify certificate: x509: ";

pub fn of_fetch(error: DialError) -> String {
    match error {
        DialError::Tls(error) => of_tls(&error),
        DialError::Lookup { host, .. } => format!("dial tcp: lookup {host}: no such host"),
        DialError::Connect(error) if error.kind() == ErrorKind::ConnectionRefused => {
            "dial tcp: connect: connection refused".to_owned()
        }
        other => other.to_string(),
    }
}

/// A failed handshake.
pub fn of_tls(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => of_certificate(why),
        Some(rustls::Error::AlertReceived(alert)) => format!("remote error: tls: {alert:?}"),
        Some(rustls::Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None if error.kind() == ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    let why = match error {
        // One of that name, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names = presented.iter().map(|name| name_of(name));
            let names = names.collect::<Vec<_>>().join(", ");
            let expected = expected.to_str();
            if names.is_empty() {
                format!("certificate is not valid for any names, but wanted to match {expected}")
            } else {
                format!("certificate is valid for {names}, not {expected}")
            }
        }
        CertificateError::Expired
        | CertificateError::NotValidYet
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        other => other.to_string(),
    };
    format!("{UNVERIFIED}{why}")
}

/// `DnsName("a")` without what is around it.
fn name_of(presented: &str) -> &str {
    let inner = presented
        .split_once('"')
        .map_or(presented, |(_, rest)| rest);
    inner.split('"').next().unwrap_or(inner)
}

/// A connection that broke off between request and answer.
pub fn of_http(error: &hyper::Error) -> String {
    let inner = error.source().and_then(|inner| inner.downcast_ref());
    // To Go the end of a stream without TLS' word of it is an end as well.
    let has_ended = inner.is_some_and(|inner: &io::Error| inner.kind() == ErrorKind::UnexpectedEof);
    if has_ended || error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
            .to_owned();
    }
    let source = error.source().map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests;
