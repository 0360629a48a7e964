//! The places of the queue and the moves between them. Pure: time is an argument.

use super::{Attempt, Backoff, CHANGES_MAX, Depth, UNSCHEDULABLE_MAX};
use crate::framework::{SortKey, WorldChange, pod_updated};
use crate::pod_info::PodInfo;
use coracle_client::clock::Instant;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

mod figures; // How many wait where.

pub use figures::Figures;

/// The parts of the queue, by upstream's names. Who is gated is among the unschedulable.
const ACTIVE: &str = "active";
const BACKOFF: &str = "backoff";
const UNSCHEDULABLE: &str = "unschedulable";

#[derive(Debug)]
enum Place {
    /// PreEnqueue keeps it out.
    Gated,
    Active(SortKey),
    Backoff((Instant, u64)),
    Unschedulable((Instant, u64)),
    /// Since the change with this number.
    InFlight(u64),
}

#[derive(Debug)]
struct Known {
    pod: Arc<PodInfo>,
    place: Place,
    attempts: u32,
    /// When it was active for the first time.
    first_active: Option<Instant>,
    /// Active because it waited long enough, and not because something helps.
    was_flushed: bool,
    /// When it first came: keeps its turn over attempts.
    entered: u64,
    priority_key: i64,
    refused_by: Vec<&'static str>,
    /// Changed while in flight: what the attempt finds is out of date.
    is_stale: bool,
}

#[derive(Debug, Default)]
pub struct State {
    known: HashMap<String, Known>,
    active: BTreeMap<SortKey, String>,
    backoff: BTreeMap<(Instant, u64), String>,
    unschedulable: BTreeMap<(Instant, u64), String>,
    gated: BTreeSet<String>,
    sequence: u64,
    /// Changes of the world, oldest first; the first has the number `changes_from`.
    changes: VecDeque<WorldChange>,
    changes_from: u64,
    in_flight: usize,
    /// How many came to a part, by what brought them there.
    came: BTreeMap<(&'static str, &'static str), u64>,
    delays: Backoff,
}

impl State {
    pub fn new(delays: Backoff) -> Self {
        Self {
            delays,
            ..Self::default()
        }
    }

    pub fn set(
        &mut self,
        pod: Arc<PodInfo>,
        gated_by: Option<&'static str>,
        key: impl Fn(u64) -> SortKey,
        now: Instant,
    ) {
        let uid = pod.uid.clone();
        let Some(known) = self.known.get_mut(&uid) else {
            self.sequence += 1;
            let entered = self.sequence;
            let priority_key = key(entered).0;
            let place = if gated_by.is_none() {
                self.active.insert((priority_key, entered), uid.clone());
                Place::Active((priority_key, entered))
            } else {
                self.gated.insert(uid.clone());
                Place::Gated
            };
            let part = gated_by.map_or(ACTIVE, |_| UNSCHEDULABLE);
            self.count(part, "UnschedulablePodAdd");
            let known = Known {
                pod,
                place,
                attempts: 0,
                first_active: gated_by.is_none().then_some(now),
                was_flushed: false,
                entered,
                priority_key,
                refused_by: gated_by.into_iter().collect(),
                is_stale: false,
            };
            self.known.insert(uid, known);
            return;
        };
        let changed = known.pod.asks_otherwise_than(&pod);
        let event = pod_updated(&known.pod, &pod);
        known.pod = pod;
        known.priority_key = key(known.entered).0;
        match known.place {
            Place::InFlight(_) => known.is_stale |= changed,
            Place::Gated if gated_by.is_none() => {
                known.refused_by.clear();
                self.activate(&uid, event, now);
            }
            Place::Gated => known.refused_by = gated_by.into_iter().collect(),
            Place::Unschedulable(_) if changed => self.wake(&uid, event, now),
            _ => {}
        }
    }

    pub fn is_known(&self, uid: &str) -> bool {
        self.known.contains_key(uid)
    }

    pub fn remove(&mut self, uid: &str) {
        self.leave(uid);
        self.known.remove(uid);
        self.trim_changes();
    }

    /// Takes a pod out of its place, whichever it is; it is in none until the caller puts it.
    fn leave(&mut self, uid: &str) {
        let Some(known) = self.known.get(uid) else {
            return;
        };
        match known.place {
            Place::Gated => drop(self.gated.remove(uid)),
            Place::Active(key) => drop(self.active.remove(&key)),
            Place::Backoff(key) => drop(self.backoff.remove(&key)),
            Place::Unschedulable(key) => drop(self.unschedulable.remove(&key)),
            Place::InFlight(_) => self.in_flight -= 1,
        }
    }

    fn count(&mut self, part: &'static str, event: &'static str) {
        *self.came.entry((part, event)).or_default() += 1;
    }

    /// `event` is what brings it there, here and below.
    fn activate(&mut self, uid: &str, event: &'static str, now: Instant) {
        self.leave(uid);
        let Some(known) = self.known.get_mut(uid) else {
            return;
        };
        known.first_active.get_or_insert(now);
        let key = (known.priority_key, known.entered);
        known.place = Place::Active(key);
        self.active.insert(key, uid.to_owned());
        self.count(ACTIVE, event);
    }

    pub fn take(&mut self, now: Instant) -> Option<Attempt> {
        let (_, uid) = self.active.pop_first()?;
        let since = self.changes_from + self.changes.len() as u64;
        let known = self.known.get_mut(&uid)?;
        known.place = Place::InFlight(since);
        known.attempts += 1;
        known.is_stale = false;
        self.in_flight += 1;
        Some(Attempt {
            pod: Arc::clone(&known.pod),
            number: known.attempts,
            first_active: known.first_active.unwrap_or(now),
            was_flushed: known.was_flushed,
        })
    }

    pub fn done(&mut self, uid: &str) {
        if matches!(
            self.known.get(uid),
            Some(Known {
                place: Place::InFlight(_),
                ..
            })
        ) {
            self.remove(uid);
        }
    }

    /// The changes since the pod was handed out; `None` when some are no longer kept.
    pub fn changes_during(&self, uid: &str) -> Option<impl Iterator<Item = &WorldChange>> {
        let known = self.known.get(uid)?;
        let Place::InFlight(since) = known.place else {
            return None;
        };
        if known.is_stale || since < self.changes_from {
            return None;
        }
        let skip = usize::try_from(since - self.changes_from).ok()?;
        Some(self.changes.iter().skip(skip))
    }

    /// Ends an attempt; `again` sends the pod to backoff, else it waits for help.
    pub fn put_back(
        &mut self,
        attempt: &Attempt,
        plugins: Vec<&'static str>,
        again: bool,
        now: Instant,
    ) {
        let uid = &attempt.pod.uid;
        if !matches!(
            self.known.get(uid),
            Some(Known {
                place: Place::InFlight(_),
                ..
            })
        ) {
            return; // Deleted meanwhile.
        }
        self.leave(uid);
        self.sequence += 1;
        let Some(known) = self.known.get_mut(uid) else {
            return;
        };
        known.refused_by = plugins;
        known.was_flushed = false;
        let part = if again { BACKOFF } else { UNSCHEDULABLE };
        if again {
            let key = (now + self.delays.after(known.attempts), self.sequence);
            known.place = Place::Backoff(key);
            self.backoff.insert(key, uid.clone());
        } else {
            let key = (now, self.sequence);
            known.place = Place::Unschedulable(key);
            self.unschedulable.insert(key, uid.clone());
        }
        self.count(part, "ScheduleAttemptFailure");
        self.trim_changes();
    }

    pub fn waiting_that(&self, helps: impl Fn(&PodInfo, &[&'static str]) -> bool) -> Vec<String> {
        let waiting = self.unschedulable.values();
        waiting
            .filter(|uid| {
                let known = self.known.get(uid.as_str());
                known.is_some_and(|known| helps(&known.pod, &known.refused_by))
            })
            .cloned()
            .collect()
    }

    pub fn gated_that(&self, may_enter: impl Fn(&PodInfo) -> bool) -> Vec<String> {
        let gated = self.gated.iter();
        gated
            .filter(|uid| {
                let known = self.known.get(uid.as_str());
                known.is_some_and(|known| may_enter(&known.pod))
            })
            .cloned()
            .collect()
    }

    /// From gated to active.
    pub fn open(&mut self, uid: &str, event: &'static str, now: Instant) {
        if let Some(known) = self.known.get_mut(uid)
            && matches!(known.place, Place::Gated)
        {
            known.refused_by.clear();
            self.activate(uid, event, now);
        }
    }

    /// From unschedulable to active, or to backoff for what is left of its delay.
    pub fn wake(&mut self, uid: &str, event: &'static str, now: Instant) {
        let Some(known) = self.known.get(uid) else {
            return;
        };
        let Place::Unschedulable((since, _)) = known.place else {
            return;
        };
        let ready = since + self.delays.after(known.attempts);
        if ready <= now {
            return self.activate(uid, event, now);
        }
        self.leave(uid);
        self.sequence += 1;
        let key = (ready, self.sequence);
        if let Some(known) = self.known.get_mut(uid) {
            known.place = Place::Backoff(key);
            self.backoff.insert(key, uid.to_owned());
            self.count(BACKOFF, event);
        }
    }

    /// Only pods in flight need the changes.
    pub fn keep_change(&mut self, change: WorldChange) {
        if self.in_flight == 0 {
            return;
        }
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
            self.changes_from += 1;
        }
        self.changes.push_back(change);
    }

    fn trim_changes(&mut self) {
        if self.in_flight == 0 {
            self.changes_from += self.changes.len() as u64;
            self.changes.clear();
        }
    }

    /// Makes active whose delay has passed, and who has waited long enough without help.
    pub fn flush(&mut self, now: Instant) {
        while let Some((key, uid)) = self.backoff.first_key_value() {
            if key.0 > now {
                break;
            }
            let uid = uid.clone();
            self.activate(&uid, "BackoffComplete", now);
        }
        while let Some((key, uid)) = self.unschedulable.first_key_value() {
            if key.0 + UNSCHEDULABLE_MAX > now {
                break;
            }
            let uid = uid.clone();
            if let Some(known) = self.known.get_mut(&uid) {
                known.was_flushed = true;
            }
            self.activate(&uid, "UnschedulableTimeout", now);
        }
    }

    pub fn next_flush(&self) -> Option<Instant> {
        let backoff = self.backoff.keys().next().map(|key| key.0);
        let waiting = self
            .unschedulable
            .keys()
            .next()
            .map(|key| key.0 + UNSCHEDULABLE_MAX);
        backoff.into_iter().chain(waiting).min()
    }

    pub fn depth(&self) -> Depth {
        Depth {
            active: self.active.len(),
            backoff: self.backoff.len(),
            unschedulable: self.unschedulable.len(),
            in_flight: self.in_flight,
        }
    }

    #[cfg(test)]
    pub fn places(&self) -> Result<Vec<(Arc<PodInfo>, &'static str)>, String> {
        let mut places = Vec::new();
        let mut in_flight = 0;
        for (uid, known) in &self.known {
            let (place, is_there) = match &known.place {
                Place::Gated => ("gated", true),
                Place::Active(key) => ("active", self.active.get(key) == Some(uid)),
                Place::Backoff(key) => ("backoff", self.backoff.get(key) == Some(uid)),
                Place::Unschedulable(key) => {
                    ("unschedulable", self.unschedulable.get(key) == Some(uid))
                }
                Place::InFlight(_) => {
                    in_flight += 1;
                    ("in flight", true)
                }
            };
            if !is_there {
                return Err(format!("{uid} is not where it says: {place}"));
            }
            places.push((Arc::clone(&known.pod), place));
        }
        let waiting = self.active.len() + self.backoff.len() + self.unschedulable.len();
        let placed = places
            .iter()
            .filter(|(_, place)| !matches!(*place, "gated" | "in flight"));
        if waiting != placed.count() || in_flight != self.in_flight {
            return Err(format!("the queue's places do not add up: {self:?}"));
        }
        if self.changes.len() > CHANGES_MAX || self.in_flight == 0 && !self.changes.is_empty() {
            return Err(format!("{} changes are kept", self.changes.len()));
        }
        places.sort_by(|(one, _), (other, _)| one.uid.cmp(&other.uid));
        Ok(places)
    }
}
