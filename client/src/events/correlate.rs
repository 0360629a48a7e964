//! Decides how an event is written: anew, counted on an earlier one, combined, or not at all.
//!
//! Pure: time is an argument. The numbers are those of upstream's event correlator.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct About {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
}

/// Events that differ in their message alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Similar {
    about: About,
    field_path: String,
    event_type: EventType,
    reason: String,
}

/// Events that are the same but for their time. Combined events share the entry without message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    similar: Similar,
    message: Option<String>,
}

struct Written {
    name: String,
    first: Timestamp,
    count: i32,
}

struct Flood {
    messages: HashSet<String>,
    last: Timestamp,
}

struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

pub(super) struct Correlator {
    source: Source,
    floods: Cache<Similar, Flood>,
    written: Cache<Same, Written>,
    buckets: Cache<About, Bucket>,
}

impl Correlator {
    pub(super) fn new(source: Source) -> Self {
        let (floods, written, buckets) = (Cache::new(), Cache::new(), Cache::new());
        Self {
            source,
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
            about: about.clone(),
            field_path: observed.object.field_path.clone().unwrap_or_default(),
            event_type: observed.event_type,
            reason: observed.reason.clone(),
        };
        let combined = self.is_flood(&similar, &observed.message, at);
        let (message, key_message) = if combined {
            (
                format!("(combined from similar events): {}", observed.message),
                None,
            )
        } else {
            (observed.message.clone(), Some(observed.message.clone()))
        };
        let same = Same {
            similar,
            message: key_message,
        };
        let known = self.written.get_mut(&same, at);
        let again = known.is_some();
        let (name, first, count) = match known {
            Some(written) => {
                written.count = written.count.saturating_add(1);
                (written.name.clone(), written.first, written.count)
            }
            None => {
                let name = format!("{}.{:x}", about.name, at.as_nanosecond());
                let written = Written {
                    name: name.clone(),
                    first: at,
                    count: 1,
                };
                self.written.insert(same, written, at);
                (name, at, 1)
            }
        };
        if !self.take_token(about, at) {
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
    fn is_flood(&mut self, similar: &Similar, message: &str, at: Timestamp) -> bool {
        let fresh = || Flood {
            messages: HashSet::new(),
            last: at,
        };
        let flood = self.floods.get_or_insert_with(similar, fresh, at);
        if at.as_second() - flood.last.as_second() > SIMILAR_WINDOW_S {
            flood.messages.clear();
        }
        flood.last = at;
        flood.messages.insert(message.to_owned());
        if flood.messages.len() < SIMILAR_MAX {
            return false;
        }
        // One makes room, so that the set stays bounded.
        if let Some(any) = flood.messages.iter().next().cloned() {
            flood.messages.remove(&any);
        }
        true
    }

    fn take_token(&mut self, about: About, at: Timestamp) -> bool {
        let full = || Bucket {
            tokens: BURST,
            filled: at,
        };
        let bucket = self.buckets.get_or_insert_with(&about, full, at);
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

fn about(object: &ObjectReference) -> About {
    About {
        api_version: object.api_version.clone().unwrap_or_default(),
        kind: object.kind.clone().unwrap_or_default(),
        namespace: object.namespace.clone().unwrap_or_default(),
        name: object.name.clone().unwrap_or_default(),
        uid: object.uid.clone().unwrap_or_default(),
    }
}

/// A map that forgets its older half when it is full.
struct Cache<K, V>(HashMap<K, (V, Timestamp)>);

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn get_mut(&mut self, key: &K, now: Timestamp) -> Option<&mut V> {
        let (value, used) = self.0.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn insert(&mut self, key: K, value: V, now: Timestamp) {
        if self.0.len() >= CACHE_MAX {
            let mut uses: Vec<Timestamp> = self.0.values().map(|(_, used)| *used).collect();
            uses.sort_unstable();
            let middle = uses[uses.len() / 2];
            self.0.retain(|_, (_, used)| *used > middle);
        }
        self.0.insert(key, (value, now));
    }

    fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V, now: Timestamp) -> &mut V {
        if !self.0.contains_key(key) {
            self.insert(key.clone(), make(), now);
        }
        self.get_mut(key, now)
            .expect("inserted just above if it was missing")
    }
}
