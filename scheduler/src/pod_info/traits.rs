//! What pods of one workload have in common, kept once for all of them.
//!
//! Who counts pods counts those alike together: a node of a hundred pods has a handful of traits.

use super::{AffinityTerm, PodLabels, PodTerms, terms};
use crate::sharing::Sharing;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq)]
pub struct Traits {
    pub namespace: Box<str>,
    pub labels: PodLabels,
    /// Of affinity to other pods, and of the opposite. Most pods have none.
    pub terms: Option<Box<PodTerms>>,
}

#[cfg(test)]
thread_local! {
    /// How often traits were worked out on this thread.
    pub static DERIVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Traits {
    pub(super) fn of(pod: &Pod, spec: &PodSpec) -> Self {
        #[cfg(test)]
        DERIVED.set(DERIVED.get() + 1);
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        Self {
            namespace: namespace.into(),
            labels: PodLabels::new(pod.metadata.labels.as_ref()),
            terms: terms::of(spec, namespace),
        }
    }

    /// Terms that another pod must not meet.
    pub fn anti_affinity(&self) -> &[AffinityTerm] {
        let terms = self.terms.as_deref();
        terms.map_or(&[], |terms| &terms.anti_affinity)
    }
}

/// Equal ones have equal labels; terms differ seldom where these do not.
impl Hash for Traits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.namespace, &self.labels).hash(state);
    }
}

/// The traits of all pods there are. Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct TraitsTable(Arc<Mutex<Sharing<Traits>>>);

impl TraitsTable {
    /// The same `Arc` for equal traits.
    pub fn share(&self, traits: Traits) -> Arc<Traits> {
        self.0.lock().share(traits)
    }
}

/// What was found out of traits, kept by their address while a world is looked at.
#[derive(Debug)]
pub struct Memo<T>(HashMap<usize, T, BuildHasherDefault<AddressHasher>>);

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> Memo<T> {
    /// `traits` must be there for as long as this is.
    pub fn get(&mut self, traits: &Arc<Traits>, find: impl FnOnce(&Traits) -> T) -> &T {
        let address = Arc::as_ptr(traits).addr();
        self.0.entry(address).or_insert_with(|| find(traits))
    }
}

/// Addresses differ enough when they are spread over the bits.
#[derive(Debug, Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize((*byte).into());
        }
    }

    fn write_usize(&mut self, address: usize) {
        // An odd constant near 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ address as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(namespace: &str) -> Traits {
        Traits {
            namespace: namespace.into(),
            labels: PodLabels::default(),
            terms: None,
        }
    }

    #[test]
    fn what_was_found_of_traits_is_found_once() {
        let (mut memo, one, other) = (
            Memo::default(),
            Arc::new(traits("a")),
            Arc::new(traits("b")),
        );
        assert_eq!(*memo.get(&one, |_| 1), 1);
        assert_eq!(*memo.get(&other, |_| 2), 2);
        assert_eq!(*memo.get(&one, |_| 3), 1);
    }
}
