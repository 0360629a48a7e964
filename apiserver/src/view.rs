//! What authorization and admission may read: objects by key, never a write.

use bytes::Bytes;
use coracle_api::object::{Object, ObjectKey};
use coracle_store::Store;
use memchr::memmem;

/// A read-only look at the newest stored objects. `group` is empty for the core group and
/// `namespace` for cluster-scoped resources.
pub trait View: Send + Sync {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Object>;

    /// The bytes of an object; the same ones as long as it does not change.
    fn stored(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Bytes>;

    /// All objects, or those of one namespace, in the order of their keys.
    fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Object>;

    /// Of all objects those whose stored bytes have this text; the others are not decoded.
    fn having(&self, group: &str, plural: &str, text: &str) -> Vec<Object>;
}

/// Where the objects of a resource are in the store.
pub fn partition(group: &str, plural: &str) -> String {
    format!("{group}/{plural}")
}

/// An object as it is stored; `None` for bytes that are none, which nobody here wrote.
pub fn decode(value: &[u8]) -> Option<Object> {
    Object::from_value(serde_json::from_slice(value).ok()?)
}

impl View for Store {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Object> {
        let key = ObjectKey::new(namespace, name).to_string();
        let snapshot = self.snapshot(&partition(group, plural));
        decode(&snapshot.get(&key)?.value)
    }

    fn stored(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Bytes> {
        let key = ObjectKey::new(namespace, name).to_string();
        let snapshot = self.snapshot(&partition(group, plural));
        Some(snapshot.get(&key)?.value.clone())
    }

    fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Object> {
        let prefix = match namespace {
            Some(namespace) if !namespace.is_empty() => format!("{namespace}/"),
            _ => String::new(),
        };
        let snapshot = self.snapshot(&partition(group, plural));
        snapshot
            .range_from("", &prefix)
            .filter_map(|(_, entry)| decode(&entry.value))
            .collect()
    }

    fn having(&self, group: &str, plural: &str, text: &str) -> Vec<Object> {
        let finder = memmem::Finder::new(text);
        let snapshot = self.snapshot(&partition(group, plural));
        snapshot
            .range_from("", "")
            .filter(|(_, entry)| finder.find(&entry.value).is_some())
            .filter_map(|(_, entry)| decode(&entry.value))
            .collect()
    }
}

#[cfg(test)]
pub mod tests;
