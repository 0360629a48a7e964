//! Every row and verb is refused to whom has no rights.

use super::*;

/// What any user may do by design: reviews of themselves.
fn is_open_to_users(info: &RequestInfo) -> bool {
    matches!(
        info.resource.as_str(),
        "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "selfsubjectreviews"
    )
}

/// Every row and subresource of the catalogue with each of its verbs, in and out of a namespace.
fn requests() -> Vec<RequestInfo> {
    let mut all = Vec::new();
    for row in catalogue::all() {
        let mut add = |subresource: &str, verb: &str| {
            for namespace in ["", "default", "kube-system"] {
                let single = !matches!(verb, "list" | "watch" | "create" | "deletecollection");
                all.push(RequestInfo {
                    verb: verb.to_owned(),
                    group: row.group.to_owned(),
                    version: row.version.to_owned(),
                    resource: row.plural.to_owned(),
                    subresource: subresource.to_owned(),
                    namespace: if row.is_namespaced() { namespace } else { "" }.to_owned(),
                    name: if single { "some" } else { "" }.to_owned(),
                    is_resource_request: true,
                    ..RequestInfo::default()
                });
            }
        };
        row.verbs.iter().for_each(|verb| add("", verb));
        for subresource in row.subresources {
            subresource
                .verbs
                .iter()
                .for_each(|verb| add(subresource.name, verb));
        }
    }
    all
}

#[test]
fn every_row_and_verb_is_refused_to_whom_has_no_rights() {
    let authorizer = authorizer(&[]);
    let requests = requests();
    assert!(requests.len() > 50, "the catalogue is there");
    for user in [User::anonymous(), User::named("jane")] {
        for info in &requests {
            if !user.is_anonymous() && is_open_to_users(info) {
                continue;
            }
            let status = authorizer
                .check(&user, info)
                .expect_err(&format!("{user:?} {info:?}"));
            assert_eq!(
                (status.code, &*status.reason),
                (403, "Forbidden"),
                "{info:?}"
            );
        }
    }
}

#[test]
fn no_path_but_the_public_ones_is_open_to_anonymous() {
    let authorizer = authorizer(&[]);
    for path in [
        "/",
        "/api",
        "/apis",
        "/metrics",
        "/logs",
        "/openapi/v2",
        "/debug/pprof",
        "/coracle/v1/nodes/n1/tunnel",
        "/coracle/v1/ca/",
        "/readyz/x",
        "/versions",
    ] {
        let info = request(&format!("get {path}"));
        assert!(
            authorizer.check(&User::anonymous(), &info).is_err(),
            "{path}"
        );
    }
}
