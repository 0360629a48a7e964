//! Which pods an autoscaler is about, and who else is about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::selector::LabelSelector;
use coracle_client::ObjectKey;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;

/// The selectors of the targets of all autoscalers, as last seen; bounded by these.
#[derive(Debug, Default)]
pub(super) struct Selectors(Mutex<BTreeMap<ObjectKey, LabelSelector>>);

/// Why no pods can be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub event: &'static str,
    pub condition: &'static str,
    /// Of the event.
    pub message: String,
    /// Of the condition.
    pub text: String,
}

impl Fault {
    fn new(event: &'static str, message: String) -> Self {
        Self {
            event,
            condition: event,
            text: message.clone(),
            message,
        }
    }
}

pub(super) fn parse(selector: &str) -> Result<LabelSelector, Fault> {
    if selector.is_empty() {
        return Err(Fault {
            condition: "InvalidSelector",
            text: "the HPA target's scale is missing a selector".to_owned(),
            ..Fault::new("SelectorRequired", "selector is required".to_owned())
        });
    }
    LabelSelector::parse(selector).map_err(|why| {
        let text = "couldn't convert selector into a corresponding internal selector object";
        Fault::new("InvalidSelector", format!("{text}: {why}"))
    })
}

pub(super) fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    selector.matches_with(|key| {
        labels
            .and_then(|labels| labels.get(key))
            .map(String::as_str)
    })
}

impl Selectors {
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    /// Notes what an autoscaler selects, and refuses pods that another one selects too.
    pub(super) fn claim(
        &self,
        key: &ObjectKey,
        selector: &LabelSelector,
        text: &str,
        pods: &[Arc<Pod>],
    ) -> Result<(), Fault> {
        let mut all = self.0.lock();
        all.insert(key.clone(), selector.clone());
        let of_namespace = all
            .iter()
            .filter(|(other, _)| other.namespace == key.namespace);
        let selecting = of_namespace
            .filter(|(_, selector)| pods.iter().any(|pod| selects(selector, pod)))
            .map(|(other, _)| format!("{}/{}", other.namespace, other.name));
        let selecting: Vec<String> = selecting.collect();
        if selecting.len() <= 1 {
            return Ok(());
        }
        let who = selecting.join(" ");
        let message = format!("pods by selector {text} are controlled by multiple HPAs: [{who}]");
        Err(Fault::new("AmbiguousSelector", message))
    }
}
