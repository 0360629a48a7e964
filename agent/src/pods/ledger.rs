//! What of the node's cpu and memory its pods were given, and who waits for more.
//!
//! Resizes that do not fit wait. Whenever something is given back, those that wait are looked at
//! again in upstream's order: first who asks for no more than it has, then by priority, by quality
//! of service, and by how long they wait.

use super::sizes::Amounts;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;

#[derive(Debug)]
pub struct Ledger {
    capacity: Amounts,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    given: HashMap<String, Amounts>,
    waiting: Vec<Ask>,
}

/// A resize of one pod.
#[derive(Clone, Debug)]
pub struct Ask {
    pub uid: String,
    pub wanted: Amounts,
    pub priority: i32,
    pub is_guaranteed: bool,
    pub since: Timestamp,
    /// Told when what it waited for was given.
    pub wake: Arc<Notify>,
}

impl Ledger {
    pub fn new(capacity: Amounts) -> Self {
        Self {
            capacity,
            inner: Mutex::default(),
        }
    }

    /// The pod has this, whether or not it fits, and wants no other. It may be less than before.
    pub fn hold(&self, uid: &str, amounts: Amounts) {
        let mut inner = self.inner.lock();
        inner.waiting.retain(|ask| ask.uid != uid);
        inner.given.insert(uid.to_owned(), amounts);
        self.retry(&mut inner);
    }

    /// The pod has nothing any more, and wants nothing.
    pub fn release(&self, uid: &str) {
        let mut inner = self.inner.lock();
        inner.waiting.retain(|ask| ask.uid != uid);
        if inner.given.remove(uid).is_some() {
            self.retry(&mut inner);
        }
    }

    /// What the pod has; None of one that is not looked after yet, or no more.
    pub fn given(&self, uid: &str) -> Option<Amounts> {
        self.inner.lock().given.get(uid).copied()
    }

    /// Gives the pod what it asks for, or says in upstream's words why it has to wait.
    pub fn ask(&self, ask: Ask) -> Result<(), String> {
        let mut inner = self.inner.lock();
        let uid = ask.uid.clone();
        inner.waiting.retain(|other| other.uid != uid);
        inner.waiting.push(ask);
        self.retry(&mut inner);
        match inner.waiting.iter().find(|ask| ask.uid == uid) {
            Some(ask) => Err(self.missing(&inner, ask).unwrap_or_default()),
            None => Ok(()),
        }
    }

    fn retry(&self, inner: &mut Inner) {
        let mut waiting = std::mem::take(&mut inner.waiting);
        waiting.sort_by_key(|ask| {
            let has = inner.given.get(&ask.uid).copied().unwrap_or_default();
            let is_more =
                ask.wanted.cpu_milli > has.cpu_milli || ask.wanted.memory_bytes > has.memory_bytes;
            let is_lesser = !ask.is_guaranteed;
            (
                is_more,
                std::cmp::Reverse(ask.priority),
                is_lesser,
                ask.since,
            )
        });
        for ask in waiting {
            if self.missing(inner, &ask).is_some() {
                inner.waiting.push(ask);
            } else {
                inner.given.insert(ask.uid, ask.wanted);
                ask.wake.notify_one();
            }
        }
    }

    fn missing(&self, inner: &Inner, ask: &Ask) -> Option<String> {
        let others = || inner.given.iter().filter(|(uid, _)| **uid != ask.uid);
        let check = |name: &str, requested: i64, of: fn(&Amounts) -> i64| {
            let used: i64 = others().map(|(_, given)| of(given)).sum();
            let capacity = of(&self.capacity);
            (requested > 0 && requested > capacity - used).then(|| {
                format!(
                    "Node didn't have enough resource: {name}, requested: {requested}, used: \
                     {used}, capacity: {capacity}"
                )
            })
        };
        check("cpu", ask.wanted.cpu_milli, |amounts| amounts.cpu_milli).or_else(|| {
            check("memory", ask.wanted.memory_bytes, |amounts| {
                amounts.memory_bytes
            })
        })
    }
}

#[cfg(test)]
mod tests;
