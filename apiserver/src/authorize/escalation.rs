//! Nobody grants what they do not have: the check on writes of roles and bindings.
//!
//! A user may write a role whose rules they hold, or when the verb `escalate` on it is theirs; a
//! binding when they hold the rules of the role, or when they have `bind` on it. Source: upstream's
//! RBAC policy-based storage.

use super::covers::uncovered;
use super::rbac::GROUP;
use super::{Authorizer, rule};
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::request_info::RequestInfo;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};

/// Judges a create or update of one of RBAC's kinds. `old` is the stored object.
pub fn check(
    authorizer: &Authorizer,
    user: &User,
    plural: &str,
    new: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    if user.in_group(MASTERS) {
        return Ok(());
    }
    match plural {
        "roles" | "clusterroles" => check_role(authorizer, user, plural, new, old),
        _ => check_binding(authorizer, user, plural, new, old),
    }
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
    // What was there already is no escalation: relabelling a role needs no rights of it.
    let unchanged = old.is_some_and(|old| {
        old.get(&["rules"]) == new.get(&["rules"])
            && old.get(&["aggregationRule"]) == new.get(&["aggregationRule"])
    });
    let escalate = request("escalate", plural, new.namespace(), new.name());
    if unchanged || authorizer.authorize(user, &escalate).is_allowed() {
        return Ok(());
    }
    if !new
        .list(&["aggregationRule", "clusterRoleSelectors"])
        .is_empty()
        && !has_all(authorizer, user)
    {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(refused(plural, new.name(), why));
    }
    holds(authorizer, user, plural, new, &rule::of_role(new))
}

/// True when the user has every verb on everything, which an aggregation rule could gather.
fn has_all(authorizer: &Authorizer, user: &User) -> bool {
    let all = |list: &[String]| list.iter().any(|one| one == "*");
    let (rules, _) = authorizer.rules_for(user, "");
    rules
        .iter()
        .any(|rule| all(&rule.verbs) && all(&rule.api_groups) && all(&rule.resources))
        && rules
            .iter()
            .any(|rule| all(&rule.verbs) && all(&rule.non_resource_urls))
}

fn check_binding(
    authorizer: &Authorizer,
    user: &User,
    plural: &str,
    new: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let unchanged = old.is_some_and(|old| {
        old.get(&["subjects"]) == new.get(&["subjects"])
            && old.get(&["roleRef"]) == new.get(&["roleRef"])
    });
    let (kind, name) = (new.str(&["roleRef", "kind"]), new.str(&["roleRef", "name"]));
    let roles = if kind == "Role" {
        "roles"
    } else {
        "clusterroles"
    };
    let bind = request("bind", roles, new.namespace(), name);
    if unchanged || authorizer.authorize(user, &bind).is_allowed() {
        return Ok(());
    }
    let rules = authorizer
        .rbac()
        .role_rules(kind, new.namespace(), name)
        .map_err(|_| {
            Status::not_found(Subject {
                group: GROUP,
                resource: roles,
                name,
            })
        })?;
    holds(authorizer, user, plural, new, &rules)
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
    let missing: Vec<String> = missing.iter().map(rule::Rule::compact).collect();
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
        why.push_str(&format!("; resolution errors: [{}]", errors.join(", ")));
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
