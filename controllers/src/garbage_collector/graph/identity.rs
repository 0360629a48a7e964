//! Which object: its kind, its place and its uid.

use std::fmt::{Display, Formatter, Result};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Shared by all that name the object.
pub(in crate::garbage_collector) type Uid = Arc<str>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::garbage_collector) struct Kind {
    pub(in crate::garbage_collector) kind: Box<str>,
    pub(in crate::garbage_collector) api_version: Box<str>,
}

/// Ordered by kind, then by place: objects of one kind stand together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::garbage_collector) struct Identity {
    pub(in crate::garbage_collector) kind: Arc<Kind>,
    /// Empty for an object that has none.
    pub(in crate::garbage_collector) namespace: Box<str>,
    pub(in crate::garbage_collector) name: Box<str>,
    pub(in crate::garbage_collector) uid: Uid,
}

impl Kind {
    pub(in crate::garbage_collector) fn new(api_version: &str, kind: &str) -> Self {
        Self {
            kind: kind.into(),
            api_version: api_version.into(),
        }
    }
}

impl Identity {
    /// None for metadata without name or uid, which no server sends.
    pub(in crate::garbage_collector) fn of(kind: &Arc<Kind>, meta: &ObjectMeta) -> Option<Self> {
        Some(Self {
            kind: kind.clone(),
            namespace: meta.namespace.as_deref().unwrap_or_default().into(),
            name: meta.name.as_deref()?.into(),
            uid: meta.uid.as_deref()?.into(),
        })
    }
}

/// As upstream writes it in events.
impl Display for Identity {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Kind { kind, api_version } = self.kind.as_ref();
        let (namespace, name, uid) = (&self.namespace, &self.name, &self.uid);
        write!(
            f,
            "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]"
        )
    }
}
