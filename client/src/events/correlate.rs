//! Decides how an event is written: anew, counted on an earlier one, combined, or not at all.
//!
//! Pure: time is an argument. The numbers are those of upstream's event correlator.
//!
//! What was written is known by hashes of 64 bits under a key of the process: thousands of short texts
//! that stay for hours, among what comes and goes, would keep a page of memory each. That two of a
//! thousand share one is less likely than that the disk errs, and then an event is counted on another.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::EventType;
use crate::clock;

/// Distinct messages of one kind of event about one object, after which they are combined.
const SIMILAR_MAX: usize = 10;
/// Similar events further apart than this are not a flood.
const SIMILAR_WINDOW_S: i64 = 600;
/// Events about one object that may come in a burst.
const BURST: f64 = 25.0;
/// And then one in five minutes.
const REFILL_PER_S: f64 = 1.0 / 300.0;
/// Entries of each cache. A quarter of upstream's, as a node at the edge is small.
const CACHE_MAX: usize = 1024;

/// Who says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Source {
    pub component: String,
    pub host: String,
}

/// What happened, as it was told to the recorder.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub object: ObjectReference,
    pub event_type: EventType,
    pub reason: String,
    pub message: String,
    /// Of the event itself.
    pub annotations: BTreeMap<String, String>,
    pub at: Timestamp,
}

/// The write that an event becomes.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // One at a time, never stored.
pub(super) enum Write {
    Create(Event),
    /// Count on the event of this name; the whole of it is at hand in case that one is gone.
    Count(Event),
}

/// The object of an event, with everything that tells it from others.
#[derive(Hash)]
struct About<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

/// Events that differ in their message alone.
#[derive(Hash)]
struct Similar<'a> {
    about: &'a About<'a>,
    field_path: &'a str,
    event_type: EventType,
    reason: &'a str,
}

/// Events that are the same but for their time. Combined events share the entry without message.
#[derive(Hash)]
struct Same<'a> {
    similar: &'a Similar<'a>,
    message: Option<&'a str>,
}

/// Of one of these, or of a message.
type Digest = u64;

/// Its name follows from the first time.
struct Written {
    first: Timestamp,
    count: i32,
}

struct Flood {
    /// The first ones of them.
    messages: [Digest; SIMILAR_MAX - 1],
    distinct: usize,
    last: Timestamp,
}

struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

pub(super) struct Correlator {
    source: Source,
    hashes: RandomState,
    floods: Cache<Flood>,
    written: Cache<Written>,
    buckets: Cache<Bucket>,
}

impl Correlator {
    pub(super) fn new(source: Source) -> Self {
        let (floods, written, buckets) = (Cache::new(), Cache::new(), Cache::new());
        Self {
            source,
            hashes: RandomState::new(),
            floods,
            written,
            buckets,
        }
    }

    /// What to write, or nothing when the object has used up its allowance.
    pub(super) fn correlate(&mut self, observed: Observed) -> Option<Write> {
        let at = observed.at;
        let about = about(&observed.object);
        let similar = Similar {
            about: &about,
            field_path: observed.object.field_path.as_deref().unwrap_or_default(),
            event_type: observed.event_type,
            reason: &observed.reason,
        };
        let digest = self.hashes.hash_one(&similar);
        let combined = self.is_flood(digest, self.hashes.hash_one(&observed.message), at);
        let (message, key_message) = if combined {
            let message = format!("(combined from similar events): {}", observed.message);
            (message, None)
        } else {
            (observed.message.clone(), Some(observed.message.as_str()))
        };
        let same = self.hashes.hash_one(Same {
            similar: &similar,
            message: key_message,
        });
        let known = self.written.get_mut(same, at);
        let again = known.is_some();
        let (first, count) = match known {
            Some(written) => {
                written.count = written.count.saturating_add(1);
                (written.first, written.count)
            }
            None => {
                let (first, count) = (at, 1);
                self.written.insert(same, Written { first, count }, at);
                (first, count)
            }
        };
        let name = format!("{}.{:x}", about.name, first.as_nanosecond());
        if !self.take_token(self.hashes.hash_one(&about), at) {
            return None;
        }
        let event = self.event(observed, name, message, first, count);
        Some(if again {
            Write::Count(event)
        } else {
            Write::Create(event)
        })
    }

    /// Notes the message and says whether its like have become too many.
    fn is_flood(&mut self, similar: Digest, message: Digest, at: Timestamp) -> bool {
        let fresh = || Flood {
            messages: [0; SIMILAR_MAX - 1],
            distinct: 0,
            last: at,
        };
        let flood = self.floods.get_or_insert_with(similar, fresh, at);
        if at.as_second() - flood.last.as_second() > SIMILAR_WINDOW_S {
            flood.distinct = 0;
        }
        flood.last = at;
        if flood.messages[..flood.distinct].contains(&message) {
            return false;
        }
        let Some(free) = flood.messages.get_mut(flood.distinct) else {
            return true;
        };
        *free = message;
        flood.distinct += 1;
        false
    }

    fn take_token(&mut self, about: Digest, at: Timestamp) -> bool {
        let full = || Bucket {
            tokens: BURST,
            filled: at,
        };
        let bucket = self.buckets.get_or_insert_with(about, full, at);
        let passed_s = at.duration_since(bucket.filled).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed_s * REFILL_PER_S).min(BURST);
        bucket.filled = at;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    fn event(
        &self,
        observed: Observed,
        name: String,
        message: String,
        first: Timestamp,
        count: i32,
    ) -> Event {
        // Events about objects without a namespace live in the default one.
        let namespace = match observed.object.namespace.as_deref() {
            None | Some("") => "default".to_owned(),
            Some(namespace) => namespace.to_owned(),
        };
        let host = (!self.source.host.is_empty()).then(|| self.source.host.clone());
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace),
                annotations: (!observed.annotations.is_empty()).then_some(observed.annotations),
                ..ObjectMeta::default()
            },
            involved_object: observed.object,
            type_: Some(observed.event_type.as_str().to_owned()),
            reason: Some(observed.reason),
            message: Some(message),
            first_timestamp: Some(Time(clock::seconds(first))),
            last_timestamp: Some(Time(clock::seconds(observed.at))),
            count: Some(count),
            source: Some(EventSource {
                component: Some(self.source.component.clone()),
                host: host.clone(),
            }),
            reporting_component: Some(self.source.component.clone()),
            reporting_instance: Some(host.unwrap_or_default()),
            ..Event::default()
        }
    }
}

fn about(object: &ObjectReference) -> About<'_> {
    About {
        api_version: object.api_version.as_deref().unwrap_or_default(),
        kind: object.kind.as_deref().unwrap_or_default(),
        namespace: object.namespace.as_deref().unwrap_or_default(),
        name: object.name.as_deref().unwrap_or_default(),
        uid: object.uid.as_deref().unwrap_or_default(),
    }
}

/// A map that forgets its older half when it is full.
struct Cache<V>(HashMap<Digest, (V, Timestamp)>);

impl<V> Cache<V> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn get_mut(&mut self, key: Digest, now: Timestamp) -> Option<&mut V> {
        let (value, used) = self.0.get_mut(&key)?;
        *used = now;
        Some(value)
    }

    fn insert(&mut self, key: Digest, value: V, now: Timestamp) {
        if self.0.len() >= CACHE_MAX {
            let mut uses: Vec<Timestamp> = self.0.values().map(|(_, used)| *used).collect();
            uses.sort_unstable();
            let middle = uses[uses.len() / 2];
            self.0.retain(|_, (_, used)| *used > middle);
        }
        self.0.insert(key, (value, now));
    }

    fn get_or_insert_with(
        &mut self,
        key: Digest,
        make: impl FnOnce() -> V,
        now: Timestamp,
    ) -> &mut V {
        if !self.0.contains_key(&key) {
            self.insert(key, make(), now);
        }
        self.get_mut(key, now)
            .expect("inserted just above if it was missing")
    }
}
