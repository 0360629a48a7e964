//! API services: which server answers for a group version.
//!
//! Those of this server's own groups are local; they are made at each start.

use crate::catalogue;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::admission_registration::webhook;
use crate::kinds::checks;
use crate::kinds::metrics;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, Durability, NameRule, Part, Requester, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};

pub const GROUP: &str = "apiregistration.k8s.io";
/// Says who looks after an API service: `onstart` for the local ones.
pub const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
pub const ON_START: &str = "onstart";

pub const ROW: Resource = Resource {
    categories: &["api-extensions"],
    subresources: &[row::STATUS],
    ..row::cluster(
        GROUP,
        "v1",
        Names {
            kind: "APIService",
            plural: "apiservices",
            singular: "apiservice",
            schema: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        },
        &ApiService,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Service", "string", "The service that answers, or Local."),
    column("Available", "string", "Whether it answers."),
    row::AGE,
];

/// Upstream's order of the groups, and of the versions in a group, the highest first.
const PRIORITIES: &[(&str, &str, u32, u32)] = &[
    ("", "v1", 18_000, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("autoscaling", "v1", 17_500, 15),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    // As metrics-server registers itself.
    (metrics::GROUP, "v1beta1", 100, 100),
];

const GROUP_PRIORITY: std::ops::RangeInclusive<i64> = 1..=20_000;
const VERSION_PRIORITY: std::ops::RangeInclusive<i64> = 1..=1_000;

/// The API services of what this server serves itself.
pub fn local() -> impl Iterator<Item = Object> {
    let served = |group: &str, version: &str| {
        let mut groups = catalogue::groups();
        groups.any(|one| one.name == group && one.versions.contains(&version))
    };
    PRIORITIES
        .iter()
        .filter(move |(group, version, ..)| served(group, version))
        .map(|(group, version, of_group, of_version)| {
            let mut spec = json!({
                "version": version,
                "groupPriorityMinimum": of_group,
                "versionPriority": of_version,
            });
            if !group.is_empty() {
                spec["group"] = (*group).into();
            }
            let mut object = Object::new(&format!("{GROUP}/v1"), "APIService");
            let name = format!("{version}.{group}");
            object.set(&["metadata", "name"], name.into());
            object.set(&["metadata", "labels"], json!({ MANAGED: ON_START }));
            object.set(&["spec"], spec);
            object
        })
}

#[derive(Debug)]
struct ApiService;

impl Rules for ApiService {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "spec", json!({}));
        json::default_in(object.root_mut(), "status", json!({}));
        if let Some(spec) = object.get_mut(&["spec"]) {
            webhook::default_port(spec);
            for field in ["groupPriorityMinimum", "versionPriority"] {
                json::default(spec, field, 0);
            }
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    /// What is local is there from the first moment, also what another server had before.
    fn stamp(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        now: &str,
    ) {
        if is_local(object) && old.is_none_or(|old| !is_local(old)) {
            let available = json!({
                "type": "Available", "status": "True", "lastTransitionTime": now,
                "reason": "Local", "message": "Local APIServices are always available",
            });
            object.set(&["status", "conditions"], json!([available]));
        }
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = name(object);
        errors.extend(spec(object));
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, part: Part<'_>) -> ErrorList {
        match part {
            Part::Status => status(new),
            Part::Main | Part::Other(_) => self.validate_create(new),
        }
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let service = |field: &str| object.str(&["spec", "service", field]);
        let server = if is_local(object) {
            "Local".to_owned()
        } else {
            format!("{}/{}", service("namespace"), service("name"))
        };
        vec![
            object.name().into(),
            server.into(),
            available(object).into(),
            print::age_of(object, now),
        ]
    }

    /// The local ones come again with each start.
    fn durability(&self, new: &Object, _old: Option<&Object>, _part: Part<'_>) -> Durability {
        if is_local(new) && new.label(MANAGED) == Some(ON_START) {
            Durability::Lazy
        } else {
            Durability::Synced
        }
    }
}

fn is_local(object: &Object) -> bool {
    object.get(&["spec", "service"]).is_none_or(Value::is_null)
}

fn available(object: &Object) -> String {
    let mut conditions = object.list(&["status", "conditions"]).iter();
    let Some(condition) = conditions.find(|one| one["type"] == "Available") else {
        return "Unknown".to_owned();
    };
    match (
        json::text(condition, "status"),
        json::text(condition, "reason"),
    ) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

/// A group version has one API service, which is named after it.
fn name(object: &Object) -> ErrorList {
    let [version, group] = ["version", "group"].map(|field| object.str(&["spec", field]));
    let wanted = format!("{version}.{group}");
    let name = object.name();
    if name.is_empty() || name == wanted || !names::path_segment(name).is_empty() {
        return ErrorList::new();
    }
    let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
    let path = Path::root("metadata").child("name");
    vec![FieldError::invalid(&path, name, detail)]
}

fn spec(object: &Object) -> ErrorList {
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let path = Path::root("spec");
    let mut errors = ErrorList::new();
    let (group, of_group) = (json::text(spec, "group"), path.child("group"));
    let (version, of_version) = (json::text(spec, "version"), path.child("version"));
    if !group.is_empty() {
        checks::each(&mut errors, &of_group, group, names::dns_subdomain(group));
    } else if version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&of_group, detail));
    }
    let details = names::dns_1035_label(version);
    checks::each(&mut errors, &of_version, version, details);
    for (field, range) in [
        ("groupPriorityMinimum", GROUP_PRIORITY),
        ("versionPriority", VERSION_PRIORITY),
    ] {
        let priority = json::int(spec, field).unwrap_or(0);
        if !range.contains(&priority) {
            let detail = format!("must be positive and less than {}", range.end());
            errors.push(FieldError::invalid(&path.child(field), priority, detail));
        }
    }
    errors.extend(server(spec, &path));
    errors
}

fn server(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (bundle, of_bundle) = (json::text(spec, "caBundle"), path.child("caBundle"));
    let is_insecure = json::flag(spec, "insecureSkipTLSVerify");
    let insecure = path.child("insecureSkipTLSVerify");
    let Some(service) = json::some(spec, "service") else {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", decoded_bytes(bundle));
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(&of_bundle, shown, detail));
        }
        if is_insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(&insecure, true, detail));
        }
        return errors;
    };
    let path = path.child("service");
    checks::required(&mut errors, service, "namespace", &path);
    checks::required(&mut errors, service, "name", &path);
    let port = json::int(service, "port").unwrap_or(0);
    let details = names::port_number(port);
    if !details.is_empty() {
        let detail = format!("port is not valid: {}", details.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    if is_insecure && !bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        errors.push(FieldError::invalid(&insecure, true, detail));
    }
    errors
}

/// How long base64 is once decoded.
fn decoded_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn status(object: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::root("status").child("conditions");
    for (index, condition) in object.list(&["status", "conditions"]).iter().enumerate() {
        let status = json::text(condition, "status");
        let path = path.index(index).child("status");
        checks::one_of(&mut errors, status, &["True", "False", "Unknown"], &path);
    }
    errors
}

#[cfg(test)]
mod tests;
