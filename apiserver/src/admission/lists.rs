//! What is asked about writes, kept beside the requests, in step with the store.
//!
//! A request for which there is nothing looks at one number.

use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is asked about a write: to change it, or to say whether it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Does {
    Mutate,
    Judge,
}

impl Does {
    pub const ALL: [Self; 2] = [Self::Mutate, Self::Judge];
}

/// All that mutate, and all that judge, each in its order.
#[derive(Debug)]
pub struct Lists<T> {
    mutating: List<T>,
    judging: List<T>,
}

#[derive(Debug)]
struct List<T> {
    count: AtomicUsize,
    all: RwLock<Arc<[T]>>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        let none = || List {
            count: AtomicUsize::new(0),
            all: RwLock::new(Arc::from([])),
        };
        Self {
            mutating: none(),
            judging: none(),
        }
    }
}

impl<T> Lists<T> {
    fn list(&self, does: Does) -> &List<T> {
        match does {
            Does::Mutate => &self.mutating,
            Does::Judge => &self.judging,
        }
    }

    pub fn put(&self, does: Does, all: Arc<[T]>) {
        let list = self.list(does);
        let count = all.len();
        *list.all.write() = all;
        list.count.store(count, Ordering::Release);
    }

    pub fn has_any(&self, does: Does) -> bool {
        self.list(does).count.load(Ordering::Acquire) != 0
    }

    pub fn all(&self, does: Does) -> Arc<[T]> {
        Arc::clone(&self.list(does).all.read())
    }
}
