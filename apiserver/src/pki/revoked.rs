//! Client certificates that were taken back before their end.
//!
//! Kept as the ConfigMap `kube-system/coracle-revoked-certificates`, so that it is in every
//! snapshot and counts in every server of the store: single certificates by serial number, and
//! users whose certificates count only when they were issued later. It is looked at with every
//! request that shows a certificate; it is parsed only when it has changed.

use crate::view::View;
use bytes::Bytes;
use coracle_api::timestamp;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub const NAMESPACE: &str = "kube-system";
pub const NAME: &str = "coracle-revoked-certificates";
/// The key of its data.
pub const KEY: &str = "revoked.json";

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Revoked {
    pub certificates: Vec<RevokedCertificate>,
    pub users: Vec<RevokedUser>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokedCertificate {
    /// In hexadecimal digits.
    pub serial: String,
    /// Whose it was, for people.
    #[serde(default)]
    pub user: String,
    /// When it would have ended, RFC 3339: it needs no mention after that.
    #[serde(default)]
    pub ends: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokedUser {
    pub user: String,
    /// Certificates issued up to and including this moment do not count, RFC 3339.
    pub issued_until: String,
}

/// A certificate as far as a list looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub serial: Vec<u8>,
    pub user: String,
    /// Seconds since the epoch.
    pub issued_at: i64,
}

impl Revoked {
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(text)
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a list of texts serializes")
    }

    pub fn add_certificate(&mut self, certificate: RevokedCertificate) {
        let serial = &certificate.serial;
        self.certificates.retain(|other| other.serial != *serial);
        self.certificates.push(certificate);
    }

    pub fn add_user(&mut self, user: &str, now: Timestamp) {
        self.users.retain(|other| other.user != user);
        self.users.push(RevokedUser {
            user: user.to_owned(),
            issued_until: timestamp::format_time(now),
        });
    }

    /// Leaves out certificates that have ended by themselves.
    pub fn prune(&mut self, now: Timestamp) {
        let has_ended =
            |one: &RevokedCertificate| timestamp::parse(&one.ends).is_some_and(|ends| ends < now);
        self.certificates.retain(|one| !has_ended(one));
    }

    pub fn holds(&self, subject: &Subject) -> bool {
        let serial = hex::encode(&subject.serial);
        let mut certificates = self.certificates.iter();
        let mut users = self.users.iter();
        certificates.any(|one| one.serial.eq_ignore_ascii_case(&serial))
            || users.any(|one| {
                // A moment that cannot be read is taken for now: it was meant to take back.
                let until = timestamp::parse(&one.issued_until);
                one.user == subject.user
                    && until.is_none_or(|until| subject.issued_at <= until.as_second())
            })
    }
}

/// The list as it was last read, with the bytes that it was read from.
#[derive(Debug, Default)]
pub struct Revocations(RwLock<Option<(Bytes, Arc<Revoked>)>>);

impl Revocations {
    pub fn is_revoked(&self, view: &dyn View, subject: &Subject) -> bool {
        let Some(stored) = view.stored("", "configmaps", NAMESPACE, NAME) else {
            return false;
        };
        self.list(&stored).holds(subject)
    }

    fn list(&self, stored: &Bytes) -> Arc<Revoked> {
        // Stored bytes never change, and these are kept: the same place is the same list.
        let same = |known: &Bytes| known.as_ptr() == stored.as_ptr() && known.len() == stored.len();
        let known = self.0.read().clone();
        let before = match known {
            Some((known, list)) if same(&known) => return list,
            Some((_, list)) => list,
            None => Arc::default(),
        };
        let read = crate::view::decode(stored).map(|map| map.str(&["data", KEY]).to_owned());
        let list = match Revoked::parse(&read.unwrap_or_default()) {
            Ok(list) => Arc::new(list),
            Err(error) => {
                tracing::error!(
                    %error,
                    "the list of revoked certificates cannot be read: the one before it counts"
                );
                before
            }
        };
        *self.0.write() = Some((stored.clone(), Arc::clone(&list)));
        list
    }
}

#[cfg(test)]
mod tests;
