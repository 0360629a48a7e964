//! A part of each object of one kind, by namespace and name.

use coracle_client::ObjectKey;
use coracle_client::informer::{Event, Kind, Sink};
use coracle_client::key_of;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Cheap to clone; clones share.
#[derive(Debug)]
pub struct Table<V>(Arc<RwLock<BTreeMap<ObjectKey, V>>>);

impl<V> Clone for Table<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V: Clone> Table<V> {
    pub fn get(&self, key: &ObjectKey) -> Option<V> {
        self.0.read().get(key).cloned()
    }

    pub fn set(&self, key: ObjectKey, value: V) {
        self.0.write().insert(key, value);
    }

    pub fn remove(&self, key: &ObjectKey) {
        self.0.write().remove(key);
    }

    /// Looks at all objects, in order of namespace and name.
    pub fn each(&self, mut look: impl FnMut(&ObjectKey, &V)) {
        for (key, value) in self.0.read().iter() {
            look(key, value);
        }
    }

    /// Looks at the objects of a namespace.
    pub fn each_in(&self, namespace: &str, mut look: impl FnMut(&V)) {
        let from = ObjectKey::new(namespace, "");
        let table = self.0.read();
        let rest = table.range(from..);
        for (_, value) in rest.take_while(|(key, _)| key.namespace == namespace) {
            look(value);
        }
    }
}

/// Keeps a table in line with the API; nothing of an object is kept but what `part` takes of it.
pub(crate) struct Keeper<K, V> {
    pub table: Table<V>,
    /// `None` leaves the object out.
    pub part: fn(K) -> Option<V>,
    /// What a list under way has shown; it takes the table's place when the list is whole.
    pub listed: BTreeMap<ObjectKey, V>,
    /// Called after the first whole list.
    pub ready: Option<Box<dyn FnOnce() + Send>>,
}

impl<K: Kind, V: Clone + Debug + Send + Sync> Sink<K> for Keeper<K, V> {
    fn apply(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let key = key_of(&object);
                if let Some(value) = (self.part)(object) {
                    self.listed.insert(key, value);
                }
            }
            Event::InitDone => {
                *self.table.0.write() = std::mem::take(&mut self.listed);
                if let Some(ready) = self.ready.take() {
                    ready();
                }
            }
            Event::Apply(object) => {
                let key = key_of(&object);
                match (self.part)(object) {
                    Some(value) => self.table.set(key, value),
                    None => self.table.remove(&key),
                }
            }
            Event::Delete(object) => self.table.remove(&key_of(&object)),
        }
    }
}

#[cfg(test)]
mod tests;
