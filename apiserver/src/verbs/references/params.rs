//! Whoever names parameters of an admission policy must be allowed to read them: the policy's
//! messages could tell what is in them.
//!
//! A policy names a kind (`paramKind`), which takes `get` on all objects of it; a binding names
//! some of these (`paramRef`), which takes `get` on the one or `list` where a selector chooses.
//! What cannot be resolved takes the right to everything. An update of a policy that leaves its
//! kind as it was is not asked again; each update of a binding is. Source: upstream's registries of
//! admissionregistration.k8s.io, and what kube-apiserver v1.36 answers.

use super::Referring;
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::request_info::RequestInfo;
use coracle_api::custom::Kinds;
use coracle_api::field::{FieldError, Path};
use coracle_api::object::Object;
use coracle_api::{catalogue, json};
use serde_json::Value;

pub const GROUP: &str = "admissionregistration.k8s.io";

pub fn check(write: &Referring<'_>) -> Option<FieldError> {
    if write.asked.user.in_group(MASTERS) {
        return None;
    }
    match write.asked.resource.plural {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => of_policy(write),
        "validatingadmissionpolicybindings" => {
            of_binding(write, "validatingadmissionpolicies", false)
        }
        "mutatingadmissionpolicybindings" => of_binding(write, "mutatingadmissionpolicies", true),
        _ => None,
    }
}

/// The field of the spec, unless it is absent.
fn of_spec<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(&["spec", name]).filter(|field| !field.is_null())
}

fn of_policy(write: &Referring<'_>) -> Option<FieldError> {
    let kind = of_spec(write.new, "paramKind")?;
    let old = write.old.and_then(|old| of_spec(old, "paramKind"));
    if old.is_some_and(|old| json::same(old, kind)) {
        return None;
    }
    let needed = RequestInfo {
        verb: "get".to_owned(),
        name: "*".to_owned(),
        namespace: "*".to_owned(),
        ..Target::of(&write.api.registry.kinds(), kind).request()
    };
    let user = write.asked.user;
    if is_allowed(write, &needed) {
        return None;
    }
    let why = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind \
         (kind={}, apiVersion={})",
        shown(user),
        json::text(kind, "kind"),
        json::text(kind, "apiVersion"),
    );
    Some(FieldError::forbidden(
        &Path::root("spec").child("paramKind"),
        why,
    ))
}

/// Asked with each update too: upstream compares where the fields of the old and the new reference
/// are and not what they hold. `is_swapped`: for bindings of policies that change, upstream has user
/// and verb in each other's place in one text.
fn of_binding(write: &Referring<'_>, policies: &str, is_swapped: bool) -> Option<FieldError> {
    let param = of_spec(write.new, "paramRef")?;
    let policy_name = write.new.str(&["spec", "policyName"]);
    let policies = catalogue::find(GROUP, "v1", policies).expect("policies are in the catalogue");
    let policy = write.api.registry.get(policies, "", policy_name);
    let kind = policy
        .as_ref()
        .ok()
        .and_then(|policy| of_spec(&policy.object, "paramKind"));
    let kinds = write.api.registry.kinds();
    let target = kind.map_or(Target::ANYTHING, |kind| Target::of(&kinds, kind));
    let name = json::text(param, "name");
    let verb = if name.is_empty() { "list" } else { "get" };
    let needed = RequestInfo {
        verb: verb.to_owned(),
        name: name.to_owned(),
        namespace: json::text(param, "namespace").to_owned(),
        ..target.request()
    };
    if is_allowed(write, &needed) {
        return None;
    }
    let user = shown(write.asked.user);
    let everything = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" \
         permission for all groups, versions and resources"
    );
    let why = match (kind, target.resource) {
        _ if policy.is_err() => format!("unable to get policy {policy_name} {everything}"),
        (Some(kind), "*") => {
            let act = if target.version == "*" {
                "parse"
            } else {
                "resolve"
            };
            format!(
                "unable to {act} paramKind {} {everything}",
                shown_kind(kind)
            )
        }
        _ => {
            let (user, verb) = if is_swapped {
                (verb, user.as_str())
            } else {
                (user.as_str(), verb)
            };
            format!(
                "user {user} does not have \"{verb}\" permission on the object referenced by \
                 paramRef"
            )
        }
    };
    Some(FieldError::forbidden(
        &Path::root("spec").child("paramRef"),
        why,
    ))
}

fn is_allowed(write: &Referring<'_>, needed: &RequestInfo) -> bool {
    let authorizer = &write.api.access.authorizer;
    authorizer.authorize(write.asked.user, needed).is_allowed()
}

/// What there is to read; `*` where it is not known.
struct Target<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'static str,
}

impl<'a> Target<'a> {
    const ANYTHING: Self = Self {
        group: "*",
        version: "*",
        resource: "*",
    };

    fn of(kinds: &Kinds, param_kind: &'a Value) -> Self {
        let Some((group, version)) = group_version(json::text(param_kind, "apiVersion")) else {
            return Self::ANYTHING;
        };
        let served = kinds.by_kind(group, version, json::text(param_kind, "kind"));
        Self {
            group,
            version,
            resource: served.map_or("*", |resource| resource.plural),
        }
    }

    fn request(&self) -> RequestInfo {
        RequestInfo {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            resource: self.resource.to_owned(),
            is_resource_request: true,
            ..RequestInfo::default()
        }
    }
}

fn group_version(text: &str) -> Option<(&str, &str)> {
    match text.split_once('/') {
        None => Some(("", text)),
        Some((_, version)) if version.contains('/') => None,
        both => both,
    }
}

/// As Go shows the struct.
fn shown(user: &User) -> String {
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        user.name,
        user.uid,
        user.groups.join(" "),
        extra.join(" ")
    )
}

fn shown_kind(kind: &Value) -> String {
    let (version, kind) = (json::text(kind, "apiVersion"), json::text(kind, "kind"));
    format!("&{{{version} {kind}}}")
}
