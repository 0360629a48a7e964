//! What other resolvers answered, for its time to live. Pure: time is an argument.
//!
//! Invariants: `bytes_max` is never passed; nothing is shown after its time; the oldest goes first.

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::RData;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A name that moved is seen after this at the latest.
const POSITIVE_MAX: Duration = Duration::from_secs(3600);
const NEGATIVE_MAX: Duration = Duration::from_secs(1800);
/// Of a table's slot, two keys and what an allocation costs.
const ENTRY_BYTES: usize = 192;
/// One answer may not push out all others.
const PACKET_BYTES_MAX: usize = 16 * 1024;

/// A question, in lower case, with the flags that change its answer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Key(Arc<[u8]>);

impl Key {
    pub fn new(query: &Query, is_dnssec_ok: bool, is_checking_disabled: bool) -> Self {
        let mut bytes = Vec::with_capacity(query.name.len() + 8);
        for label in query.name.iter() {
            bytes.push(label.len() as u8);
            bytes.extend(label.iter().map(u8::to_ascii_lowercase));
        }
        bytes.extend(u16::from(query.query_type).to_be_bytes());
        bytes.push(u8::from(is_dnssec_ok) << 1 | u8::from(is_checking_disabled));
        Self(bytes.into())
    }
}

#[derive(Debug)]
struct Entry {
    packet: Arc<[u8]>,
    stored_at: Instant,
    good_until: Instant,
}

#[derive(Debug)]
pub struct Cache {
    entries: HashMap<Key, Entry>,
    /// In the order of their being stored; one that was stored again has an old place too.
    order: VecDeque<(Key, Instant)>,
    bytes: usize,
    bytes_max: usize,
}

fn weight(key: &Key, packet: &[u8]) -> usize {
    key.0.len() + packet.len() + ENTRY_BYTES
}

impl Cache {
    pub fn new(bytes_max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// The packet, and the seconds that it was kept.
    pub fn get(&self, key: &Key, now: Instant) -> Option<(Arc<[u8]>, u32)> {
        let entry = self
            .entries
            .get(key)
            .filter(|entry| now < entry.good_until)?;
        let age = now.duration_since(entry.stored_at).as_secs();
        Some((entry.packet.clone(), u32::try_from(age).unwrap_or(u32::MAX)))
    }

    /// `message` is what `packet` says.
    pub fn put(&mut self, key: Key, packet: Arc<[u8]>, message: &Message, now: Instant) {
        let life = life(message);
        if life.is_zero() || packet.len() > PACKET_BYTES_MAX {
            return;
        }
        self.remove(&key);
        self.bytes += weight(&key, &packet);
        self.order.push_back((key.clone(), now));
        let entry = Entry {
            packet,
            stored_at: now,
            good_until: now + life,
        };
        self.entries.insert(key, entry);
        while self.bytes > self.bytes_max {
            let Some((oldest, stored_at)) = self.order.pop_front() else {
                break;
            };
            let entry = self.entries.get(&oldest);
            if entry.is_some_and(|entry| entry.stored_at == stored_at) {
                self.remove(&oldest);
            }
        }
        // Old places of what was stored again are bounded too.
        if self.order.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.order.retain(|(key, stored_at)| {
                entries
                    .get(key)
                    .is_some_and(|entry| entry.stored_at == *stored_at)
            });
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some((key, entry)) = self.entries.remove_entry(key) {
            self.bytes -= weight(&key, &entry.packet);
        }
    }
}

/// How long an answer may be kept: RFC 2308 for what is not there.
fn life(message: &Message) -> Duration {
    let is_empty = message.answers.is_empty();
    let seconds = match message.metadata.response_code {
        _ if message.metadata.truncation => None,
        ResponseCode::NoError if !is_empty => message.answers.iter().map(|one| one.ttl).min(),
        ResponseCode::NoError | ResponseCode::NXDomain => {
            let bounds = message
                .authorities
                .iter()
                .filter_map(|one| match &one.data {
                    RData::SOA(soa) => Some(one.ttl.min(soa.minimum)),
                    _ => None,
                });
            // A chain of names may end nowhere: its parts are kept no longer than they may be.
            let chain = message.answers.iter().map(|one| one.ttl).min();
            bounds.min().map(|bound| bound.min(chain.unwrap_or(bound)))
        }
        _ => None,
    };
    let max = if is_empty { NEGATIVE_MAX } else { POSITIVE_MAX };
    Duration::from_secs(seconds.unwrap_or(0).into()).min(max)
}

#[cfg(test)]
mod tests;
