//! Client certificates: the common name is the user, the organizations are the groups.
//!
//! The chain is verified once a connection, its end is looked at with each request: a connection
//! that outlives its certificate stops being that user.

use super::user::User;
use crate::pki::tls::ClientCertificates;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use std::sync::OnceLock;
use x509_parser::certificate::X509Certificate;

/// `extra` of a user by certificate: which certificate it was.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// What a client showed in its handshake. One a connection.
#[derive(Debug)]
pub struct PeerCertificate {
    chain: Vec<CertificateDer<'static>>,
    verified: OnceLock<Option<Verified>>,
}

#[derive(Clone, Debug)]
struct Verified {
    user: User,
    not_before: i64,
    not_after: i64,
}

impl PeerCertificate {
    /// `None` for an empty chain: the client showed nothing.
    pub fn new(chain: &[CertificateDer<'_>]) -> Option<Self> {
        if chain.is_empty() {
            return None;
        }
        Some(Self {
            chain: chain.iter().map(|one| one.clone().into_owned()).collect(),
            verified: OnceLock::new(),
        })
    }

    /// The user, when the CA vouches for the chain and it is in force.
    pub fn user(&self, clients: &ClientCertificates, now: Timestamp) -> Option<User> {
        let verified = self
            .verified
            .get_or_init(|| verify(&self.chain, clients, now))
            .as_ref()?;
        let now = now.as_second();
        (verified.not_before <= now && now <= verified.not_after).then(|| verified.user.clone())
    }
}

fn verify(
    chain: &[CertificateDer<'static>],
    clients: &ClientCertificates,
    now: Timestamp,
) -> Option<Verified> {
    if !clients.vouches(chain, now) {
        return None;
    }
    let own = chain.first()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(own).ok()?;
    let mut user = subject(&certificate)?;
    let id = format!("X509SHA256={}", hex::encode(digest(&SHA256, own)));
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Some(Verified {
        user,
        not_before: certificate.validity().not_before.timestamp(),
        not_after: certificate.validity().not_after.timestamp(),
    })
}

/// A certificate without a common name is nobody's.
fn subject(certificate: &X509Certificate<'_>) -> Option<User> {
    let subject = certificate.subject();
    let name = subject.iter_common_name().last()?.as_str().ok()?;
    if name.is_empty() {
        return None;
    }
    Some(User {
        name: name.to_owned(),
        groups: subject
            .iter_organization()
            .filter_map(|one| one.as_str().ok())
            .map(str::to_owned)
            .collect(),
        ..User::default()
    })
}
