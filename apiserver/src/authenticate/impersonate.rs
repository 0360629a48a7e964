//! Acting as somebody else: the Impersonate headers, each allowed by the verb `impersonate`.
//!
//! Runs after authentication and before authorization of the request itself.

use super::user::{
    ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNTS, UNAUTHENTICATED, User, service_account,
};
use crate::authorize::{Authorizer, forbidden};
use crate::query::percent_decode;
use crate::request_info::RequestInfo;
use coracle_api::status::Status;
use http::HeaderMap;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The user to act as: `real` itself when no header asks for another.
pub fn acting_as(authorizer: &Authorizer, real: User, headers: &HeaderMap) -> Result<User, Status> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(real);
    };
    for info in permissions(&wanted) {
        let decision = authorizer.authorize(&real, &info);
        if !decision.is_allowed() {
            return Err(forbidden(&real, &info, decision.reason()));
        }
    }
    Ok(completed(wanted))
}

fn wanted(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let mut wanted = User {
        name: one(headers, USER),
        uid: one(headers, UID),
        groups: headers
            .get_all(GROUP)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect(),
        ..User::default()
    };
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) else {
            continue;
        };
        if let Ok(value) = value.to_str() {
            let values = wanted.extra.entry(percent_decode(key)).or_default();
            values.push(value.to_owned());
        }
    }
    let asked = wanted != User::default();
    if asked && wanted.name.is_empty() {
        return Err(Status::internal(
            "requested impersonation without impersonating a user",
        ));
    }
    Ok(asked.then_some(wanted))
}

fn one(headers: &HeaderMap, name: &str) -> String {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
        .to_owned()
}

/// One access check for each thing that is taken on.
fn permissions(wanted: &User) -> Vec<RequestInfo> {
    let check =
        |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| RequestInfo {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            is_resource_request: true,
            ..RequestInfo::default()
        };
    let mut checks = vec![match service_account(&wanted.name) {
        Some((namespace, name)) => check("", "serviceaccounts", "", namespace, name),
        None => check("", "users", "", "", &wanted.name),
    }];
    checks.extend(
        wanted
            .groups
            .iter()
            .map(|group| check("", "groups", "", "", group)),
    );
    let authentication = "authentication.k8s.io";
    for (key, values) in &wanted.extra {
        checks.extend(
            values
                .iter()
                .map(|value| check(authentication, "userextras", key, "", value)),
        );
    }
    if !wanted.uid.is_empty() {
        checks.push(check(authentication, "uids", "", "", &wanted.uid));
    }
    checks
}

/// With the groups that the name brings.
fn completed(mut user: User) -> User {
    if user.groups.is_empty()
        && let Some((namespace, _)) = service_account(&user.name)
    {
        user.groups.push(SERVICE_ACCOUNTS.to_owned());
        user.groups.push(format!("{SERVICE_ACCOUNTS}:{namespace}"));
    }
    if user.name == ANONYMOUS {
        if !user.in_group(UNAUTHENTICATED) {
            user.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !user.in_group(AUTHENTICATED) && !user.in_group(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

#[cfg(test)]
mod tests;
