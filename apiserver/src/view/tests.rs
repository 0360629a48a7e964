//! A view over objects in a test.

use super::View;
use coracle_api::object::Object;
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

impl View for Objects {
    fn get(&self, _group: &str, plural: &str, namespace: &str, name: &str) -> Option<Object> {
        self.list("", plural, Some(namespace))
            .into_iter()
            .find(|object| object.name() == name)
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
}
