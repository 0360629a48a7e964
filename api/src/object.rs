//! The dynamic object: a JSON document with cheap access to metadata.
//!
//! Never typed, never validated here: a missing or ill-typed field reads as absent.

use serde_json::{Map, Value};

/// Any Kubernetes object as JSON. The root is always a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Map<String, Value>);

/// Namespace and name; `namespace` is empty for cluster-scoped objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub namespace: String,
    pub name: String,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerReference<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub controller: bool,
    pub block_owner_deletion: bool,
}

impl ObjectKey {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl Object {
    /// Takes a JSON value; `None` when it is not a JSON object.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self(map)),
            _ => None,
        }
    }

    pub fn new(api_version: &str, kind: &str) -> Self {
        let mut map = Map::new();
        map.insert("apiVersion".into(), api_version.into());
        map.insert("kind".into(), kind.into());
        Self(map)
    }

    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub fn root(&self) -> &Map<String, Value> {
        &self.0
    }

    pub fn root_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// The value under a path of field names, absent when any step is missing.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        let mut value = self.0.get(*first)?;
        for step in rest {
            value = value.as_object()?.get(*step)?;
        }
        Some(value)
    }

    pub fn get_mut(&mut self, path: &[&str]) -> Option<&mut Value> {
        let (first, rest) = path.split_first()?;
        let mut value = self.0.get_mut(*first)?;
        for step in rest {
            value = value.as_object_mut()?.get_mut(*step)?;
        }
        Some(value)
    }

    /// Sets the value under a path, making the objects on the way. A step that holds something
    /// other than an object is replaced.
    pub fn set(&mut self, path: &[&str], new: Value) {
        let Some((last, steps)) = path.split_last() else {
            return;
        };
        let mut map = &mut self.0;
        for step in steps {
            let slot = map.entry((*step).to_owned()).or_insert(Value::Null);
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            let Value::Object(next) = slot else {
                unreachable!("made an object just above")
            };
            map = next;
        }
        map.insert((*last).to_owned(), new);
    }

    pub fn remove(&mut self, path: &[&str]) -> Option<Value> {
        let (last, steps) = path.split_last()?;
        if steps.is_empty() {
            return self.0.remove(*last);
        }
        self.get_mut(steps)?.as_object_mut()?.remove(*last)
    }

    pub fn str(&self, path: &[&str]) -> &str {
        self.get(path).and_then(Value::as_str).unwrap_or("")
    }

    pub fn i64(&self, path: &[&str]) -> Option<i64> {
        self.get(path).and_then(Value::as_i64)
    }

    pub fn bool(&self, path: &[&str]) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The items of a list, or an empty slice.
    pub fn list(&self, path: &[&str]) -> &[Value] {
        self.get(path)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    pub fn api_version(&self) -> &str {
        self.str(&["apiVersion"])
    }

    pub fn kind(&self) -> &str {
        self.str(&["kind"])
    }

    pub fn name(&self) -> &str {
        self.str(&["metadata", "name"])
    }

    pub fn namespace(&self) -> &str {
        self.str(&["metadata", "namespace"])
    }

    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    pub fn uid(&self) -> &str {
        self.str(&["metadata", "uid"])
    }

    pub fn resource_version(&self) -> &str {
        self.str(&["metadata", "resourceVersion"])
    }

    pub fn generation(&self) -> i64 {
        self.i64(&["metadata", "generation"]).unwrap_or(0)
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.get(&["metadata", "labels"])?
            .as_object()?
            .get(key)?
            .as_str()
    }

    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.string_map(&["metadata", "labels"])
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.get(&["metadata", "annotations"])?
            .as_object()?
            .get(key)?
            .as_str()
    }

    pub fn string_map(&self, path: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.get(path)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.list(&["metadata", "finalizers"])
            .iter()
            .filter_map(Value::as_str)
    }

    pub fn is_deleting(&self) -> bool {
        self.get(&["metadata", "deletionTimestamp"])
            .is_some_and(|value| !value.is_null())
    }

    pub fn owner_references(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        self.list(&["metadata", "ownerReferences"])
            .iter()
            .map(|item| {
                let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or("");
                let flag = |name: &str| item.get(name).and_then(Value::as_bool).unwrap_or(false);
                OwnerReference {
                    api_version: text("apiVersion"),
                    kind: text("kind"),
                    name: text("name"),
                    uid: text("uid"),
                    controller: flag("controller"),
                    block_owner_deletion: flag("blockOwnerDeletion"),
                }
            })
    }
}
