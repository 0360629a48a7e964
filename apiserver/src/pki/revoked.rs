//! Client certificates that were taken back before their end.
//!
//! Kept as the ConfigMap `kube-system/coracle-revoked-certificates`, so that it is in every
//! snapshot and counts in every server of the store: single certificates by serial number, and
//! users whose certificates count only when they were issued later. It is looked at with every
//! request that shows a certificate; it is parsed only when it has changed.
//!
//! Invariant: a list that cannot be read takes nothing back and gives nothing back. It is refused
//! when it is written; one that is stored all the same leaves the list before it in force, and
//! without one no certificate counts but that of who mends it.

use crate::view::View;
use bytes::Bytes;
use coracle_api::object::Object;
use coracle_api::{serial_number, timestamp};
use jiff::Timestamp;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub const NAMESPACE: &str = "kube-system";
pub const NAME: &str = "coracle-revoked-certificates";
/// The key of its data.
pub const KEY: &str = "revoked.json";
/// Who takes certificates back: its own is made with the CA's key on the server's machine, for some
/// minutes.
pub const KEEPER: &str = "system:coracle-kubeconfig";

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
    /// Without leading zero bytes.
    pub serial: Vec<u8>,
    pub user: String,
    /// Seconds since the epoch.
    pub issued_at: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("it has no {KEY:?}")]
    None,
    #[error("{KEY}: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{KEY}: {0:?} is no serial number in hexadecimal digits")]
    Serial(String),
    #[error("{KEY}: {0:?} is no moment as 2026-01-02T03:04:05Z")]
    Moment(String),
}

impl Revoked {
    /// The list in a ConfigMap: what its data has under [`KEY`].
    pub fn parse(text: Option<&str>) -> Result<Self, ListError> {
        Ok(serde_json::from_str(text.ok_or(ListError::None)?)?)
    }

    /// As it must be to be written.
    pub fn in_map(map: &Object) -> Result<Self, ListError> {
        let list = Self::read(map)?;
        let mut serials = list.certificates.iter().map(|one| &one.serial);
        if let Some(text) = serials.find(|text| serial(text).is_none()) {
            return Err(ListError::Serial(text.clone()));
        }
        let mut moments = list.users.iter().map(|one| &one.issued_until);
        match moments.find(|text| timestamp::parse(text).is_none()) {
            Some(text) => Err(ListError::Moment(text.clone())),
            None => Ok(list),
        }
    }

    /// As it is stored: a number that is none takes nothing back, and keeps no other from it.
    fn read(map: &Object) -> Result<Self, ListError> {
        let text = map.str(&["data", KEY]);
        Self::parse((!text.is_empty()).then_some(text))
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a list of texts serializes")
    }

    pub fn add_certificate(&mut self, certificate: RevokedCertificate) {
        let added = serial(&certificate.serial);
        self.certificates
            .retain(|other| serial(&other.serial) != added);
        self.certificates.push(certificate);
    }

    /// Never gives back what an earlier entry took: the later moment counts.
    pub fn add_user(&mut self, user: &str, now: Timestamp) {
        let own = self.users.iter().filter(|other| other.user == user);
        let until = own.filter_map(|other| timestamp::parse(&other.issued_until));
        let until = until.fold(now, Timestamp::max);
        self.users.retain(|other| other.user != user);
        self.users.push(RevokedUser {
            user: user.to_owned(),
            issued_until: timestamp::format_time(until),
        });
    }

    /// Leaves out certificates that have ended by themselves.
    pub fn prune(&mut self, now: Timestamp) {
        let has_ended =
            |one: &RevokedCertificate| timestamp::parse(&one.ends).is_some_and(|ends| ends < now);
        self.certificates.retain(|one| !has_ended(one));
    }

    pub fn index(&self) -> Index {
        let mut users = HashMap::new();
        for one in &self.users {
            // A moment that cannot be read is taken for now: it was meant to take back.
            let until = timestamp::parse(&one.issued_until);
            let until = until.map_or(i64::MAX, Timestamp::as_second);
            let kept = users.entry(one.user.clone()).or_insert(until);
            *kept = until.max(*kept);
        }
        let serials = self
            .certificates
            .iter()
            .filter_map(|one| serial(&one.serial));
        Index {
            serials: serials.collect(),
            users,
        }
    }
}

/// A serial number from its hexadecimal digits, with or without colons and leading zeros, which
/// the encoding in a certificate has and tools leave out.
pub fn serial(text: &str) -> Option<Vec<u8>> {
    let digits = text.replace(':', "");
    if digits.is_empty() {
        return None;
    }
    let number = hex::decode(digits).ok()?;
    Some(serial_number::significant(&number).to_vec())
}

/// A list in the form in which a request asks it.
#[derive(Debug, Default)]
pub struct Index {
    serials: HashSet<Vec<u8>>,
    /// With the second until which certificates that were issued do not count.
    users: HashMap<String, i64>,
}

impl Index {
    pub fn holds(&self, subject: &Subject) -> bool {
        let until = self.users.get(&subject.user);
        self.serials.contains(&subject.serial)
            || until.is_some_and(|until| subject.issued_at <= *until)
    }
}

/// The list as it was last read, with the bytes that it was read from. `None` for one that could
/// not be read and has none before it.
type Read = (Bytes, Option<Arc<Index>>);

#[derive(Debug, Default)]
pub struct Revocations(RwLock<Option<Read>>);

/// What the list says of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Good,
    Revoked,
    /// There is a list, and it cannot be read.
    Unknown,
}

impl Revocations {
    pub fn standing(&self, view: &dyn View, subject: &Subject) -> Standing {
        let Some(stored) = view.stored("", "configmaps", NAMESPACE, NAME) else {
            return Standing::Good;
        };
        match self.list(&stored) {
            Some(list) if list.holds(subject) => Standing::Revoked,
            Some(_) => Standing::Good,
            None if subject.user == KEEPER => Standing::Good,
            None => Standing::Unknown,
        }
    }

    fn list(&self, stored: &Bytes) -> Option<Arc<Index>> {
        // Stored bytes never change, and these are kept: the same place is the same list.
        let same = |known: &Bytes| known.as_ptr() == stored.as_ptr() && known.len() == stored.len();
        let known = self.0.read().clone();
        let before = match known {
            Some((known, list)) if same(&known) => return list,
            Some((_, list)) => list,
            None => None,
        };
        let map = crate::view::decode(stored).ok_or(ListError::None);
        let list = match map.and_then(|map| Revoked::read(&map)) {
            Ok(list) => Some(Arc::new(list.index())),
            Err(error) => {
                let instead = match before {
                    Some(_) => "the one before it counts",
                    None => "no client certificate counts until it is mended",
                };
                tracing::error!(%error, "the list of revoked certificates cannot be read: {instead}");
                before
            }
        };
        *self.0.write() = Some((stored.clone(), list.clone()));
        list
    }
}

#[cfg(test)]
mod tests;
