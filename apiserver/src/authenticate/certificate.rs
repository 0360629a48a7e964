//! Client certificates: the common name is the user, the organizations are the groups.
//!
//! The chain is verified once a connection, its end is looked at with each request: a connection
//! that outlives its certificate, or whose certificate is taken back, stops being that user.

use super::user::User;
use crate::pki::revoked::{Revocations, Standing, Subject};
use crate::pki::tls::ClientCertificates;
use crate::view::View;
use coracle_api::serial_number;
use jiff::Timestamp;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use std::sync::OnceLock;
use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::x509::X509Name;

/// `extra` of a user by certificate: which certificate it was.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The attribute of a subject that is a user's uid, in Kubernetes' own arc.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

/// What a client showed in its handshake. One a connection.
#[derive(Debug)]
pub struct PeerCertificate {
    chain: Vec<CertificateDer<'static>>,
    verified: OnceLock<Verified>,
    /// A refusal may end with time, and so it counts for one period of the clock: a chain that is
    /// made to be slow to verify costs no more with many requests on its connection.
    refused: Mutex<Option<(i64, CertificateError)>>,
}

const REFUSED_SECONDS: i64 = 10;

#[derive(Clone, Debug)]
struct Verified {
    user: User,
    subject: Subject,
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
            refused: Mutex::new(None),
        })
    }

    /// The user, when the CA vouches for the chain and it is in force and was not taken back.
    pub fn user(
        &self,
        clients: &ClientCertificates,
        revocations: &Revocations,
        view: &dyn View,
        now: Timestamp,
    ) -> Result<User, CertificateError> {
        let verified = match self.verified.get() {
            Some(verified) => verified,
            None => self.verify(clients, now)?,
        };
        let now = now.as_second();
        if !(verified.not_before..=verified.not_after).contains(&now) {
            return Err(CertificateError::NotInForce(verified.user.name.clone()));
        }
        match revocations.standing(view, &verified.subject) {
            Standing::Good => Ok(verified.user.clone()),
            Standing::Revoked => Err(CertificateError::Revoked(verified.user.name.clone())),
            Standing::Unknown => Err(CertificateError::Unknown(verified.user.name.clone())),
        }
    }

    fn verify(
        &self,
        clients: &ClientCertificates,
        now: Timestamp,
    ) -> Result<&Verified, CertificateError> {
        let mut refused = self.refused.lock();
        let period = now.as_second() / REFUSED_SECONDS;
        match &*refused {
            Some((at, error)) if *at == period => return Err(error.clone()),
            _ => {}
        }
        match verify(&self.chain, clients, now) {
            Ok(verified) => Ok(self.verified.get_or_init(|| verified)),
            Err(error) => {
                *refused = Some((period, error.clone()));
                Err(error)
            }
        }
    }
}

/// Why a client certificate does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("the CA does not vouch for the client certificate, or not now, or not for a client")]
    NotVouchedFor,
    #[error("the client certificate of {0:?} is not in force")]
    NotInForce(String),
    #[error("the client certificate of {0:?} was taken back")]
    Revoked(String),
    #[error(
        "whether the client certificate of {0:?} was taken back is not known: the list of them \
         cannot be read"
    )]
    Unknown(String),
    #[error(transparent)]
    Uid(#[from] UidError),
}

/// Why the uid that a certificate names is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UidError {
    #[error("unable to parse UID into a string")]
    NoText,
    #[error("expected 1 UID, but found multiple: [{}]", .0.join(" "))]
    Several(Vec<String>),
    #[error("UID cannot be an empty string")]
    Empty,
}

fn verify(
    chain: &[CertificateDer<'static>],
    clients: &ClientCertificates,
    now: Timestamp,
) -> Result<Verified, CertificateError> {
    const REFUSED: CertificateError = CertificateError::NotVouchedFor;
    if !clients.vouches(chain, now) {
        return Err(REFUSED);
    }
    let own = chain.first().ok_or(REFUSED)?;
    let (_, certificate) = x509_parser::parse_x509_certificate(own).map_err(|_| REFUSED)?;
    let mut user = user(&certificate).ok_or(REFUSED)?;
    user.uid = uid(certificate.subject())?;
    let id = format!("X509SHA256={}", hex::encode(digest(&SHA256, own)));
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Ok(Verified {
        subject: subject_of(&certificate, &user.name),
        user,
        not_before: certificate.validity().not_before.timestamp(),
        not_after: certificate.validity().not_after.timestamp(),
    })
}

/// Empty when the subject names none.
fn uid(subject: &X509Name<'_>) -> Result<String, UidError> {
    let named = subject.iter_by_oid(&UID);
    let named = named.map(|one| {
        one.as_str()
            .map(str::to_owned)
            .map_err(|_| UidError::NoText)
    });
    let mut named = named.collect::<Result<Vec<String>, UidError>>()?;
    match (named.pop(), named.is_empty()) {
        (None, _) => Ok(String::new()),
        (Some(uid), true) if uid.is_empty() => Err(UidError::Empty),
        (Some(uid), true) => Ok(uid),
        (Some(last), false) => {
            named.push(last);
            Err(UidError::Several(named))
        }
    }
}

/// A certificate of another's making is taken for as old as it says.
pub fn subject_of(certificate: &X509Certificate<'_>, user: &str) -> Subject {
    let serial = certificate.raw_serial();
    let begins = certificate.validity().not_before.timestamp();
    Subject {
        serial: serial_number::significant(serial).to_vec(),
        user: user.to_owned(),
        issued_at: serial_number::issued_at(serial).unwrap_or(begins),
    }
}

/// A certificate without a common name is nobody's.
fn user(certificate: &X509Certificate<'_>) -> Option<User> {
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

#[cfg(test)]
mod tests;
