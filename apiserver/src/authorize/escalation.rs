//! Nobody grants what they do not have: the check on writes of roles and bindings.
//!
//! A user may write a role whose rules they hold, or when the verb `escalate` on it is theirs; a
//! binding when they hold the rules of the role, or when they have `bind` on it. Each write is
//! looked at whole, whatever of it is new; only owners and finalizers may change freely, which
//! garbage collection needs. Source: upstream's RBAC policy-based storage.

use super::covers::{compact, uncovered};
use super::rbac::{GROUP, RoleError};
use super::{Authorizer, rule};
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::request_info::RequestInfo;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject, aggregate};
use std::collections::BTreeSet;

/// Judges a create or update of one of RBAC's kinds. `old` is the stored object.
pub fn check(
    authorizer: &Authorizer,
    user: &User,
    plural: &str,
    new: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    if user.in_group(MASTERS) || old.is_some_and(|old| changes_for_collection(old, new)) {
        return Ok(());
    }
    match plural {
        "roles" | "clusterroles" => check_role(authorizer, user, plural, new, old),
        _ => check_binding(authorizer, user, plural, new),
    }
}

/// True when at most what the garbage collector changes is different.
fn changes_for_collection(old: &Object, new: &Object) -> bool {
    let rest = |object: &Object| {
        let mut rest = object.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            rest.remove(&["metadata", field]);
        }
        rest
    };
    rest(old) == rest(new)
}

fn request(verb: &str, plural: &str, namespace: &str, name: &str) -> RequestInfo {
    RequestInfo {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        resource: plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        is_resource_request: true,
        ..RequestInfo::default()
    }
}

fn check_role(
    authorizer: &Authorizer,
    user: &User,
    plural: &str,
    new: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    // Who creates names nothing yet: as on the URL.
    let name = old.map_or("", Object::name);
    let escalate = request("escalate", plural, new.namespace(), name);
    if authorizer.authorize(user, &escalate).is_allowed() {
        return Ok(());
    }
    holds(authorizer, user, plural, new, &rule::of_role(new))?;
    if is_aggregated(new) || old.is_some_and(is_aggregated) {
        let (owned, _) = authorizer.rules_for(user, "");
        if !uncovered(&owned, &rule::everything()).is_empty() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(refused(plural, new.name(), why));
        }
    }
    Ok(())
}

/// Such a role can gather anything.
fn is_aggregated(role: &Object) -> bool {
    let selectors = role.list(&["aggregationRule", "clusterRoleSelectors"]);
    !selectors.is_empty()
}

fn check_binding(
    authorizer: &Authorizer,
    user: &User,
    plural: &str,
    new: &Object,
) -> Result<(), Status> {
    let (kind, name) = (new.str(&["roleRef", "kind"]), new.str(&["roleRef", "name"]));
    let roles = match kind {
        "ClusterRole" => "clusterroles",
        _ => "roles",
    };
    let bind = request("bind", roles, new.namespace(), name);
    if authorizer.authorize(user, &bind).is_allowed() {
        return Ok(());
    }
    let rules = authorizer
        .rbac()
        .role_rules(kind, new.namespace(), name)
        .map_err(|error| match error {
            RoleError::NotFound { .. } => Status::not_found(Subject {
                group: GROUP,
                resource: plural,
                name,
            }),
            other @ RoleError::Kind(_) => Status::failed(other.to_string()),
        })?;
    holds(authorizer, user, plural, new, &rules)
}

/// Upstream looks roles up in the name of what is being written, and says so.
fn as_told(error: &RoleError, plural: &str) -> String {
    match error {
        RoleError::NotFound { name, .. } => format!("{plural}.{GROUP} {name:?} not found"),
        other @ RoleError::Kind(_) => other.to_string(),
    }
}

fn holds(
    authorizer: &Authorizer,
    user: &User,
    plural: &str,
    new: &Object,
    wanted: &[rule::Rule],
) -> Result<(), Status> {
    let (owned, errors) = authorizer.rules_for(user, new.namespace());
    let missing = uncovered(&owned, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let missing: BTreeSet<String> = compact(&missing).iter().map(rule::Rule::compact).collect();
    let missing: Vec<String> = missing.into_iter().collect();
    let groups: Vec<String> = user
        .groups
        .iter()
        .map(|group| format!("{group:?}"))
        .collect();
    let mut why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        missing.join("\n")
    );
    if !errors.is_empty() {
        let told: Vec<String> = errors.iter().map(|error| as_told(error, plural)).collect();
        why.push_str(&format!("; resolution errors: [{}]", aggregate(&told)));
    }
    Err(refused(plural, new.name(), &why))
}

fn refused(plural: &str, name: &str, why: &str) -> Status {
    let subject = Subject {
        group: GROUP,
        resource: plural,
        name,
    };
    Status::forbidden(subject, why)
}
