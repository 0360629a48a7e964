//! A view over objects in a test.

use super::View;
use bytes::Bytes;
use coracle_api::object::Object;
use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Objects(Mutex<Vec<(String, Object)>>);

impl Objects {
    pub fn new(objects: impl IntoIterator<Item = (&'static str, Value)>) -> Arc<Self> {
        let view = Self::default();
        for (plural, value) in objects {
            view.put(plural, value);
        }
        Arc::new(view)
    }

    pub fn put(&self, plural: &str, value: Value) {
        let object = Object::from_value(value).unwrap();
        let mut all = self.0.lock();
        all.retain(|(own, old)| own != plural || old.key() != object.key());
        all.push((plural.to_owned(), object));
    }
}

/// The result of what has nothing to wait for.
pub fn now_or_panic<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("there is nothing to wait for")
}

impl View for Objects {
    fn get(&self, _group: &str, plural: &str, namespace: &str, name: &str) -> Option<Object> {
        self.list("", plural, Some(namespace))
            .into_iter()
            .find(|object| object.name() == name)
    }

    fn stored(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Bytes> {
        let object = self.get(group, plural, namespace, name)?;
        Some(object.to_value().to_string().into())
    }

    fn list(&self, _group: &str, plural: &str, namespace: Option<&str>) -> Vec<Object> {
        self.0
            .lock()
            .iter()
            .filter(|(own, object)| {
                own == plural && namespace.is_none_or(|wanted| object.namespace() == wanted)
            })
            .map(|(_, object)| object.clone())
            .collect()
    }

    fn having(&self, group: &str, plural: &str, text: &str) -> Vec<Object> {
        let mut all = self.list(group, plural, None);
        all.retain(|object| object.to_value().to_string().contains(text));
        all
    }
}
