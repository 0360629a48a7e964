//! Tells of objects in events, as a client of the API.
//!
//! Best effort: an event that is refused is lost, and the log says so. Who tells sees to it that
//! the same is not told over and over.

use crate::bootstrap::{refused, send};
use crate::server::InProcess;
use coracle_api::names;
use coracle_api::object::Object;
use coracle_api::timestamp::format_micro_time;
use http::Method;
use jiff::Timestamp;
use serde_json::json;

/// Events about what has no namespace are here, as upstream's.
const NAMESPACE: &str = "default";

/// Something that happened to an object.
#[derive(Debug)]
pub struct Event<'a> {
    pub controller: &'a str,
    pub regarding: &'a Object,
    pub reason: &'a str,
    pub action: &'a str,
    pub note: &'a str,
}

#[derive(Debug)]
pub struct Recorder {
    api: InProcess,
    host_name: String,
}

impl Recorder {
    pub fn new(api: InProcess, host_name: &str) -> Self {
        Self {
            api,
            host_name: host_name.to_owned(),
        }
    }

    /// Records a warning.
    pub async fn warn(&self, event: &Event<'_>, now: Timestamp) {
        let object = self.object(event, now);
        let namespace = object.namespace();
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let error = match send(&self.api, Method::POST, &path, Some(&object)).await {
            Ok((status, _)) if status.is_success() => return,
            Ok((status, answer)) => refused(Method::POST, &path, status, &answer),
            Err(error) => error,
        };
        tracing::warn!(reason = event.reason, %error, "an event is lost");
    }

    fn object(&self, event: &Event<'_>, now: Timestamp) -> Object {
        let regarding = event.regarding;
        let namespace = match regarding.namespace() {
            "" => NAMESPACE,
            namespace => namespace,
        };
        let mut object = Object::new("events.k8s.io/v1", "Event");
        let name = name(regarding.name());
        object.set(
            &["metadata"],
            json!({ "name": name, "namespace": namespace }),
        );
        for (field, text) in [
            ("eventTime", format_micro_time(now).as_str()),
            ("type", "Warning"),
            ("reason", event.reason),
            ("action", event.action),
            ("note", event.note),
            ("reportingController", event.controller),
            (
                "reportingInstance",
                &format!("{}-{}", event.controller, self.host_name),
            ),
        ] {
            object.set(&[field], text.into());
        }
        let mut reference = json!({
            "apiVersion": regarding.api_version(), "kind": regarding.kind(),
            "name": regarding.name(), "uid": regarding.uid(),
            "resourceVersion": regarding.resource_version(),
        });
        if !regarding.namespace().is_empty() {
            reference["namespace"] = regarding.namespace().into();
        }
        object.set(&["regarding"], reference);
        object
    }
}

/// After the object, where its name may be that of an event: an address of IPv6 may not.
fn name(regarding: &str) -> String {
    let name = format!("{regarding}.{:016x}", rand::random::<u64>());
    if names::dns_subdomain(&name).is_empty() {
        return name;
    }
    uuid::Uuid::new_v4().to_string()
}
