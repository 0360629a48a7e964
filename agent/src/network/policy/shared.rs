//! The state, and who waits for what of it: the feed and the pods' links change it, one task brings
//! it into the kernel, another one keeps it on disk.

use super::feed::Heard;
use super::state::{Changes, Here, Link, State};
use parking_lot::Mutex;
use std::net::IpAddr;
use tokio::sync::{Notify, watch};

/// From where what is known is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Source {
    Nothing,
    /// What the server said last before a restart.
    Disk,
    Server,
}

#[derive(Debug)]
pub struct Shared {
    inner: Mutex<Inner>,
    /// The kernel is to be looked after.
    pub changed: Notify,
    /// How far that is done.
    applied: watch::Sender<u64>,
    source: watch::Sender<Source>,
    /// The server said something, be it that it says nothing of policies.
    has_answer: watch::Sender<bool>,
    /// The disk is to be looked after.
    pub news: Notify,
    /// And soon: rules are other ones.
    pub new_rules: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// A list is under way: what is known is not whole.
    is_listing: bool,
    /// Counts changes that someone waits for.
    asked: u64,
    /// Nothing is written until the server tells.
    is_held: bool,
}

impl Shared {
    pub fn new(state: State, source: Source) -> Self {
        Self {
            inner: Mutex::new(Inner {
                state,
                ..Inner::default()
            }),
            changed: Notify::new(),
            applied: watch::Sender::new(0),
            source: watch::Sender::new(source),
            has_answer: watch::Sender::new(false),
            news: Notify::new(),
            new_rules: Notify::new(),
        }
    }

    /// Looks at it under the lock. Must be quick.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.inner.lock().state)
    }

    pub fn hear(&self, hear: impl FnOnce(&mut State) -> Heard) {
        let mut inner = self.inner.lock();
        let heard = hear(&mut inner.state);
        match heard {
            // What is known goes on until the end of a list says what is gone.
            Heard::Begun => inner.is_listing = self.source() < Source::Server,
            Heard::Listed => inner.is_listing = false,
            _ => {}
        }
        drop(inner);
        match heard {
            Heard::Begun => {}
            Heard::Listed => {
                self.reach(Source::Server);
                self.answered();
                self.changed.notify_one();
                self.new_rules.notify_one();
            }
            Heard::Rules { is_news: true } => {
                self.changed.notify_one();
                self.new_rules.notify_one();
            }
            Heard::Peers { is_news: true } => {
                self.changed.notify_one();
                self.news.notify_one();
            }
            Heard::Rules { .. } | Heard::Peers { .. } => {}
        }
    }

    pub fn set_listing(&self, is_listing: bool) {
        self.inner.lock().is_listing = is_listing;
        self.changed.notify_one();
    }

    pub fn set_held(&self, is_held: bool) {
        self.inner.lock().is_held = is_held;
    }

    pub fn is_held(&self) -> bool {
        self.inner.lock().is_held
    }

    pub fn set_names(&self, addresses: &[IpAddr]) {
        self.inner.lock().state.set_names(addresses);
    }

    /// The number that `applied` reaches when the kernel has it.
    pub fn set_here(&self, link: &Link, here: Option<Here>) -> u64 {
        let mut inner = self.inner.lock();
        inner.state.set_here(link, here);
        inner.asked += 1;
        self.changed.notify_one();
        inner.asked
    }

    /// Gives what is to be written, and the number that is reached then. None while the first list
    /// is under way.
    pub fn take<T>(&self, take: impl FnOnce(&mut State) -> T) -> Option<(u64, T)> {
        let mut inner = self.inner.lock();
        if inner.is_listing {
            return None;
        }
        Some((inner.asked, take(&mut inner.state)))
    }

    pub fn has_applied(&self, number: u64) {
        self.applied.send_replace(number);
    }

    pub async fn applied(&self, number: u64) {
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|reached| *reached >= number).await;
        reached.expect("the sender is here");
    }

    /// Gives the chains that are to be deleted: they do not depend on what is told meanwhile.
    pub fn sweep(&self) -> Changes {
        self.inner.lock().state.sweep()
    }

    pub fn answered(&self) {
        self.has_answer.send_replace(true);
    }

    /// Until the server answers.
    pub async fn answer(&self) {
        let mut has_answer = self.has_answer.subscribe();
        let answered = has_answer.wait_for(|has_answer| *has_answer).await;
        answered.expect("the sender is here");
    }

    fn reach(&self, source: Source) {
        self.source.send_if_modified(|known| {
            let is_later = *known < source;
            *known = (*known).max(source);
            is_later
        });
    }

    pub fn source(&self) -> Source {
        *self.source.borrow()
    }

    pub async fn reached(&self, least: Source) {
        let mut source = self.source.subscribe();
        let reached = source.wait_for(|source| *source >= least).await;
        reached.expect("the sender is here");
    }
}

#[cfg(test)]
mod tests;
