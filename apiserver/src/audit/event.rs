//! One `audit.k8s.io/v1` Event, field by field in upstream's order. Pure.

use super::policy::API_VERSION;
use crate::authenticate::User;
use crate::request_info::RequestInfo;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Upstream cuts a longer one off.
const USER_AGENT_MAX: usize = 1024;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    pub level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: String,
    pub stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    pub user: UserInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<UserInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_metadata: Option<Value>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Value>,
    request_received_timestamp: String,
    pub stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<Cow<'static, str>, String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct UserInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    pub fn of(user: &User) -> Self {
        Self {
            username: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

impl ObjectReference {
    fn of(info: &RequestInfo) -> Self {
        Self {
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            api_group: info.group.clone(),
            api_version: info.version.clone(),
            subresource: info.subresource.clone(),
            ..Self::default()
        }
    }

    /// What the URL did not say and the object does.
    pub fn complete(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let fields = [
            (&mut self.namespace, "namespace"),
            (&mut self.name, "name"),
            (&mut self.uid, "uid"),
            (&mut self.resource_version, "resourceVersion"),
        ];
        for (field, name) in fields {
            if let (true, Some(text)) = (field.is_empty(), metadata[name].as_str()) {
                text.clone_into(field);
            }
        }
    }
}

/// What is known of a request when it arrives.
#[derive(Debug)]
pub struct Arrival<'a> {
    pub audit_id: String,
    pub uri: &'a http::Uri,
    pub info: &'a RequestInfo,
    pub source_ips: Vec<String>,
    pub user_agent: &'a str,
    pub received: String,
}

impl Event {
    pub fn new(arrival: Arrival<'_>) -> Self {
        let info = arrival.info;
        let uri = arrival.uri.path_and_query();
        Self {
            kind: "Event",
            api_version: API_VERSION,
            level: "",
            audit_id: arrival.audit_id,
            stage: "",
            request_uri: uri.map_or_else(|| "/".to_owned(), ToString::to_string),
            verb: info.verb.clone(),
            user: UserInfo::default(),
            impersonated_user: None,
            authentication_metadata: None,
            source_ips: arrival.source_ips,
            user_agent: cut(arrival.user_agent),
            object_ref: info.is_resource_request.then(|| ObjectReference::of(info)),
            response_status: None,
            request_object: None,
            response_object: None,
            stage_timestamp: arrival.received.clone(),
            request_received_timestamp: arrival.received,
            annotations: BTreeMap::new(),
        }
    }

    /// One line of the log.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("an event always serializes into memory");
        line.push(b'\n');
        line
    }
}

fn cut(user_agent: &str) -> String {
    if user_agent.len() <= USER_AGENT_MAX {
        return user_agent.to_owned();
    }
    let end = (0..=USER_AGENT_MAX)
        .rev()
        .find(|end| user_agent.is_char_boundary(*end));
    format!("{}...TRUNCATED", &user_agent[..end.unwrap_or(0)])
}

/// Takes `managedFields` out of an object, or out of each item of a list or table.
pub fn without_managed_fields(object: &mut Value) {
    let drop_from = |object: &mut Value| {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    };
    if object.get("metadata").is_some() {
        drop_from(object);
    }
    for (list, inside) in [("items", None), ("rows", Some("object"))] {
        let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for item in items {
            let item = match inside {
                None => Some(item),
                Some(field) => item.get_mut(field),
            };
            if let Some(item) = item.filter(|item| item.get("metadata").is_some()) {
                drop_from(item);
            }
        }
    }
}
