//! The labels of a pod, in little room: there are as many of these as pods.

use crate::selector::{LabelSet, Labels};

/// Sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodLabels(Box<[(Box<str>, Box<str>)]>);

impl PodLabels {
    pub fn new(labels: Option<&Labels>) -> Self {
        let labels = labels.into_iter().flatten();
        let pairs = labels.map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        Self(pairs.collect())
    }

    /// Labels of objects are sorted by key as well.
    pub fn are(&self, labels: Option<&Labels>) -> bool {
        let own = self.0.iter().map(|(key, value)| (&**key, &**value));
        let labels = labels.into_iter().flatten();
        own.eq(labels.map(|(key, value)| (key.as_str(), value.as_str())))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl LabelSet for PodLabels {
    fn label(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        found.ok().map(|index| &*self.0[index].1)
    }
}
