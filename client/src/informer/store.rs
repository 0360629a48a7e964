//! The objects of an informer and their indices. Synchronous; the informer holds the lock.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use coracle_api::object::ObjectKey;

type IndexFunction<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// Ordered by namespace, then name, which makes a namespace a range.
pub(super) struct Store<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    by_owner: Index<K>,
    indices: Vec<(&'static str, IndexFunction<K>, Index<K>)>,
}

/// Values to objects; an object is identified by its address, which its `Arc` keeps unique.
struct Index<K>(HashMap<String, HashMap<usize, Arc<K>>>);

impl<K> Index<K> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn insert(&mut self, value: String, object: &Arc<K>) {
        self.0
            .entry(value)
            .or_default()
            .insert(address(object), object.clone());
    }

    fn remove(&mut self, value: &str, object: &Arc<K>) {
        if let Some(objects) = self.0.get_mut(value) {
            objects.remove(&address(object));
            if objects.is_empty() {
                self.0.remove(value);
            }
        }
    }

    fn get(&self, value: &str) -> Vec<Arc<K>> {
        self.0
            .get(value)
            .map(|objects| objects.values().cloned().collect())
            .unwrap_or_default()
    }
}

fn address<K>(object: &Arc<K>) -> usize {
    Arc::as_ptr(object).cast::<()>() as usize
}

fn owners<K: kube::Resource>(object: &K) -> impl Iterator<Item = &str> {
    object
        .meta()
        .owner_references
        .iter()
        .flatten()
        .map(|owner| owner.uid.as_str())
}

impl<K: kube::Resource> Store<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            by_owner: Index::new(),
            indices: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.objects.get(key).cloned()
    }

    pub(super) fn list(&self) -> Vec<Arc<K>> {
        self.objects.values().cloned().collect()
    }

    pub(super) fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let start = Bound::Included(ObjectKey::new(namespace, ""));
        self.objects
            .range((start, Bound::Unbounded))
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect()
    }

    pub(super) fn by_owner_uid(&self, uid: &str) -> Vec<Arc<K>> {
        self.by_owner.get(uid)
    }

    pub(super) fn by_index(&self, name: &str, value: &str) -> Vec<Arc<K>> {
        let index = self.indices.iter().find(|(known, ..)| *known == name);
        index
            .map(|(.., index)| index.get(value))
            .unwrap_or_default()
    }

    pub(super) fn add_index(&mut self, name: &'static str, values: IndexFunction<K>) {
        if self.indices.iter().any(|(known, ..)| *known == name) {
            return;
        }
        let mut index = Index::new();
        for object in self.objects.values() {
            for value in values(object) {
                index.insert(value, object);
            }
        }
        self.indices.push((name, values, index));
    }

    /// Puts the object in its place and returns what was there.
    pub(super) fn insert(&mut self, key: ObjectKey, object: &Arc<K>) -> Option<Arc<K>> {
        let old = self.objects.insert(key, object.clone());
        if let Some(old) = &old {
            self.unlink(old);
        }
        for owner in owners(object.as_ref()) {
            self.by_owner.insert(owner.to_owned(), object);
        }
        for (_, values, index) in &mut self.indices {
            for value in values(object) {
                index.insert(value, object);
            }
        }
        old
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let old = self.objects.remove(key)?;
        self.unlink(&old);
        Some(old)
    }

    /// The keys for which the predicate holds.
    pub(super) fn keys_where(&self, predicate: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        self.objects
            .keys()
            .filter(|key| predicate(key))
            .cloned()
            .collect()
    }

    fn unlink(&mut self, object: &Arc<K>) {
        for owner in owners(object.as_ref()) {
            self.by_owner.remove(owner, object);
        }
        for (_, values, index) in &mut self.indices {
            for value in values(object) {
                index.remove(&value, object);
            }
        }
    }
}
