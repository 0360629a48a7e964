//! Brings IPAddress objects in line with the Services, and tells of addresses and node ports that
//! cannot be brought in line.
//!
//! Level-triggered: a change of a Service, an IPAddress or a ServiceCIDR says which addresses and
//! Services to look at; at the start it is all of them. Nobody chooses an address while one is
//! looked at. Never changes a Service: who has an address or a port that is not its own is told.

use super::{Allocator, GROUP, PLURAL, Range, Taken, cluster_addresses, objects, ports};
use crate::config::Clock;
use crate::events::{Event, Recorder};
use crate::registry::{Refusal, Registry};
use crate::server::InProcess;
use crate::view::{self, View};
use coracle_api::kinds::service::view::Service;
use coracle_store::{Event as Change, EventKind, Store, Watch, WatchClosed};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod plan; // Pure. Start reading here.

use plan::{GRACE, Mend, Seen, Tell};

/// What comes in so soon after each other is looked at together.
const SETTLE: Duration = Duration::from_millis(100);
/// After a write that failed, and a watch that broke off.
const RETRY: Duration = Duration::from_secs(5);
/// While these are looked at, nobody gets an address.
const KEYS_PER_PASS_MAX: usize = 256;
/// The same is told again after upstream's interval at the earliest.
const TOLD_AGAIN: Duration = Duration::from_secs(180);
/// Beyond so much within that time, the log alone tells.
const TOLD_MAX: usize = 1000;

const ADDRESS_REPAIR: &str = "ipallocator-repair-controller";
const PORT_REPAIR: &str = "portallocator-repair-controller";

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// By its key in the store.
    Service(String),
    Address(IpAddr),
}

/// Runs until `stop`, or until the store closes.
pub async fn run(
    allocator: &Allocator,
    registry: &Registry,
    api: InProcess,
    host_name: &str,
    clock: Clock,
    stop: CancellationToken,
) {
    let mut due = Due::default();
    let mut telling = Telling {
        recorder: Recorder::new(api, host_name),
        told: HashMap::new(),
    };
    while let Some(mut watches) = Watches::begin(&registry.store) {
        due.everything(&registry.store);
        let broken = loop {
            tokio::select! {
                // What is looked at is no older than what came in.
                biased;
                () = stop.cancelled() => return,
                news = watches.next() => match news {
                    Ok(news) => due.note(&news, &registry.store),
                    Err(why) => break why,
                },
                () = due.next() => {
                    let outcome = pass(allocator, registry, due.take(), clock()).await;
                    for (key, after) in outcome.again {
                        due.at(key, after);
                    }
                    let telling = telling.tell(outcome.told, clock());
                    if stop.run_until_cancelled(telling).await.is_none() {
                        return;
                    }
                }
            }
        };
        let pause = tokio::time::sleep(RETRY);
        if broken == WatchClosed::StoreClosed || stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

struct Watches {
    services: Watch,
    addresses: Watch,
    networks: Watch,
}

impl Watches {
    fn begin(store: &Store) -> Option<Self> {
        let watch = |group, plural| {
            let partition = view::partition(group, plural);
            let newest = store.snapshot(&partition).revision();
            store.watch(&partition, newest).ok()
        };
        Some(Self {
            services: watch(GROUP, PLURAL)?,
            addresses: watch(objects::GROUP, objects::ADDRESSES)?,
            networks: watch(objects::GROUP, objects::CIDRS)?,
        })
    }

    /// Waits for a change. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<News, WatchClosed> {
        tokio::select! {
            event = self.services.next() => event.map(News::Service),
            event = self.addresses.next() => event.map(News::Address),
            event = self.networks.next() => event.map(|_| News::Network),
        }
    }
}

enum News {
    Service(Arc<Change>),
    Address(Arc<Change>),
    Network,
}

/// When to look at what.
#[derive(Debug, Default)]
struct Due(BTreeMap<Key, Instant>);

impl Due {
    /// What is due earlier stays so.
    fn at(&mut self, key: Key, after: Duration) {
        let at = Instant::now() + after;
        let known = self.0.entry(key).or_insert(at);
        *known = at.min(*known);
    }

    fn everything(&mut self, store: &Store) {
        let services = store.snapshot(&view::partition(GROUP, PLURAL));
        for (key, entry) in services.iter() {
            self.at(Key::Service(key.to_string()), Duration::ZERO);
            for address in addresses(&entry.value) {
                self.at(Key::Address(address), Duration::ZERO);
            }
        }
        let given = store.snapshot(&view::partition(objects::GROUP, objects::ADDRESSES));
        for address in given.iter().filter_map(|(key, _)| key.parse().ok()) {
            self.at(Key::Address(address), Duration::ZERO);
        }
    }

    fn note(&mut self, news: &News, store: &Store) {
        match news {
            News::Service(event) => self.service(event),
            News::Address(event) => {
                if let Ok(address) = event.key.parse() {
                    self.at(Key::Address(address), SETTLE);
                }
            }
            News::Network => self.everything(store),
        }
    }

    fn service(&mut self, event: &Change) {
        let previous = event.previous.iter();
        for address in previous.flat_map(|entry| addresses(&entry.value)) {
            // Whoever deletes a Service frees its addresses, but not in the same moment.
            self.at(Key::Address(address), GRACE);
        }
        if event.kind == EventKind::Deleted {
            return;
        }
        self.at(Key::Service(event.key.to_string()), SETTLE);
        for address in addresses(&event.value) {
            self.at(Key::Address(address), SETTLE);
        }
    }

    async fn next(&self) {
        match self.0.values().min() {
            Some(at) => tokio::time::sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }

    fn take(&mut self) -> Vec<Key> {
        let now = Instant::now();
        let due = self.0.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Key> = due
            .map(|(key, _)| key.clone())
            .take(KEYS_PER_PASS_MAX)
            .collect();
        for key in &due {
            self.0.remove(key);
        }
        due
    }
}

fn addresses(service: &[u8]) -> Vec<IpAddr> {
    let service = view::decode(service);
    service.map_or_else(Vec::new, |service| {
        cluster_addresses(&Service::of(&service))
    })
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub told: Vec<Tell>,
    pub again: Vec<(Key, Duration)>,
}

/// One look, and what is mended at once.
pub async fn pass(
    allocator: &Allocator,
    registry: &Registry,
    keys: Vec<Key>,
    now: Timestamp,
) -> Outcome {
    let mut hold = allocator.hold().await;
    hold.taken.follow(&registry.store);
    let index = Index::of(&hold.taken);
    let networks = objects::networks(&registry.store);
    let mut outcome = Outcome::default();
    for key in keys {
        match &key {
            Key::Service(service) => {
                let told = look_at_service(registry, &index, service);
                outcome.told.extend(told);
            }
            Key::Address(address) => {
                let looked = look_at_address(registry, &index, &networks, *address, now).await;
                let (again, told) = looked;
                outcome.told.extend(told);
                outcome.again.extend(again.map(|after| (key, after)));
            }
        }
    }
    outcome
}

/// Who has which address and port; the oldest first.
#[derive(Debug, Default)]
struct Index<'a> {
    addresses: HashMap<IpAddr, Vec<&'a str>>,
    ports: HashMap<i64, Vec<&'a str>>,
    of: HashMap<&'a str, &'a [i64]>,
}

impl<'a> Index<'a> {
    fn of(taken: &'a Taken) -> Self {
        let mut shares: Vec<_> = taken.0.iter().collect();
        shares.sort_by_key(|(_, share)| share.created);
        let mut index = Self::default();
        for (key, share) in shares {
            for address in &share.addresses {
                index.addresses.entry(*address).or_default().push(key);
            }
            for port in &share.ports {
                index.ports.entry(*port).or_default().push(key);
            }
            index.of.insert(key, &share.ports);
        }
        index
    }
}

fn look_at_service(registry: &Registry, index: &Index<'_>, key: &str) -> Vec<Tell> {
    let Some(service) = service(registry, key) else {
        return Vec::new();
    };
    let mut ports = index.of.get(key).map_or_else(Vec::new, |own| own.to_vec());
    ports.sort_unstable();
    ports.dedup();
    plan::service(&service, &ports, ports::RANGE, |port| {
        let holders = index.ports.get(&port).and_then(|holders| holders.first());
        holders.is_some_and(|first| *first != key)
    })
}

async fn look_at_address(
    registry: &Registry,
    index: &Index<'_>,
    networks: &[Range],
    address: IpAddr,
    now: Timestamp,
) -> (Option<Duration>, Vec<Tell>) {
    let row = objects::addresses_row();
    let stored = registry.get(row, "", &address.to_string()).ok();
    let object = stored.as_ref().map(|stored| &stored.object);
    let owners = index.addresses.get(&address).into_iter().flatten();
    let owners: Vec<_> = owners.filter_map(|key| service(registry, key)).collect();
    let parent = object.and_then(objects::parent);
    let parent =
        parent.and_then(|(namespace, name)| registry.store.get(GROUP, PLURAL, namespace, name));
    let seen = Seen {
        address,
        object,
        owners: &owners,
        parent: parent.as_ref(),
        is_in_network: networks.iter().any(|network| network.contains(address)),
    };
    let (mend, told) = plan::address(&seen, now);
    let time = coracle_api::timestamp::format_time(now);
    let mended: Result<(), Refusal> = match (mend, &stored) {
        (Mend::LookAgainIn(after), _) => return (Some(after), told),
        (Mend::Create(owner), _) => objects::create(registry, owner, address, &time).await,
        (Mend::Replace(owner), Some(stored)) => {
            objects::replace(registry, stored, owner, address, &time).await
        }
        (Mend::Delete, Some(stored)) => objects::free(registry, stored).await,
        (Mend::Nothing | Mend::Replace(_) | Mend::Delete, _) => Ok(()),
    };
    let again = mended.err().map(|error| {
        tracing::warn!(%address, %error, "an address was not brought in line");
        RETRY
    });
    (again, told)
}

fn service(registry: &Registry, key: &str) -> Option<coracle_api::object::Object> {
    let (namespace, name) = key.split_once('/')?;
    registry.store.get(GROUP, PLURAL, namespace, name)
}

/// Tells what was found, as events and in the log.
struct Telling {
    recorder: Recorder,
    told: HashMap<(String, String), Instant>,
}

impl Telling {
    async fn tell(&mut self, all: Vec<Tell>, now: Timestamp) {
        self.told.retain(|_, at| at.elapsed() < TOLD_AGAIN);
        for tell in all {
            let about = (tell.about.uid().to_owned(), tell.note.clone());
            if self.told.contains_key(&about) {
                continue;
            }
            tracing::warn!(reason = tell.reason, "{}", tell.note);
            if self.told.len() >= TOLD_MAX {
                continue;
            }
            self.told.insert(about, Instant::now());
            let is_port = tell.action == plan::OF_PORTS;
            let event = Event {
                controller: if is_port { PORT_REPAIR } else { ADDRESS_REPAIR },
                regarding: &tell.about,
                reason: tell.reason,
                action: tell.action,
                note: &tell.note,
            };
            self.recorder.warn(&event, now).await;
        }
    }
}
