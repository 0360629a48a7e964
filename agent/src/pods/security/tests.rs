use super::*;
use serde_json::{Value, json};
use std::path::PathBuf;

fn pod(pod_context: Value, container_context: Value) -> Pod {
    let context = |context: Value| {
        if context.is_null() {
            json!({})
        } else {
            context
        }
    };
    serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "1" },
        "spec": {
            "securityContext": context(pod_context),
            "containers": [{ "name": "main", "securityContext": context(container_context) }],
        },
    }))
    .unwrap()
}

fn made(pod: &Pod, seccomp_default: bool) -> Result<Security, String> {
    let defaults = Defaults {
        seccomp_root: Path::new("/agent/seccomp"),
        seccomp_default,
    };
    of_container(pod, &state::spec(pod).containers[0], defaults)
}

#[test]
fn seccomp_is_the_containers_over_the_pods_over_the_nodes() {
    let of = |of_pod: Value, own: Value, default| {
        let wrap = |profile: Value| match profile {
            Value::Null => json!({}),
            profile => json!({ "seccompProfile": profile }),
        };
        made(&pod(wrap(of_pod), wrap(own)), default).map(|security| security.seccomp)
    };
    let default = || json!({ "type": "RuntimeDefault" });
    assert_eq!(of(Value::Null, Value::Null, false), Ok(Seccomp::Unconfined));
    assert_eq!(
        of(Value::Null, Value::Null, true),
        Ok(Seccomp::RuntimeDefault)
    );
    assert_eq!(
        of(default(), Value::Null, false),
        Ok(Seccomp::RuntimeDefault)
    );
    assert_eq!(
        of(default(), json!({ "type": "Unconfined" }), true),
        Ok(Seccomp::Unconfined)
    );
    assert_eq!(
        of(
            default(),
            json!({ "type": "Localhost", "localhostProfile": "a/b.json" }),
            false
        ),
        Ok(Seccomp::Localhost(PathBuf::from("/agent/seccomp/a/b.json")))
    );
    assert_eq!(
        of(json!({ "type": "Localhost" }), Value::Null, false),
        Err("localhostProfile must be set if seccompProfile type is Localhost.".into())
    );
    for outside in ["../x", "/etc/x", "a/../../x"] {
        let profile = json!({ "type": "Localhost", "localhostProfile": outside });
        let refused = of(Value::Null, profile, false).unwrap_err();
        assert!(refused.contains("out of its directory"), "{refused}");
    }
}

#[test]
fn groups_are_the_volumes_and_the_pods() {
    let security = made(
        &pod(
            json!({ "fsGroup": 7, "supplementalGroups": [5, 7], "supplementalGroupsPolicy": "Strict" }),
            Value::Null,
        ),
        false,
    )
    .unwrap();
    assert_eq!(security.supplemental_groups, [7, 5]);
    assert!(security.strict_groups);
    let refused = made(
        &pod(json!({ "supplementalGroupsPolicy": "Odd" }), Value::Null),
        false,
    );
    assert_eq!(
        refused.unwrap_err(),
        "unsupported supplementalGroupsPolicy: Odd"
    );
}

#[test]
fn app_armor_is_the_containers_over_its_annotation_over_the_pods() {
    let of_pod = json!({ "appArmorProfile": { "type": "RuntimeDefault" } });
    let mut annotated = pod(of_pod.clone(), Value::Null);
    assert_eq!(
        made(&annotated, false).unwrap().app_armor,
        AppArmor::RuntimeDefault
    );
    annotated.metadata.annotations = Some(
        [(
            format!("{APP_ARMOR_ANNOTATION}main"),
            "localhost/strict".to_owned(),
        )]
        .into(),
    );
    assert_eq!(
        made(&annotated, false).unwrap().app_armor,
        AppArmor::Localhost("strict".into())
    );
    let own = json!({ "appArmorProfile": { "type": "Unconfined" } });
    let own = pod(of_pod, own);
    assert_eq!(made(&own, false).unwrap().app_armor, AppArmor::Unconfined);
    // The pod's counts by itself.
    assert_eq!(needs_app_armor(&own), (true, None));
    assert_eq!(needs_app_armor(&annotated), (true, None));
    let empty = json!({ "appArmorProfile": { "type": "Localhost", "localhostProfile": " " } });
    assert_eq!(
        needs_app_armor(&pod(Value::Null, empty)),
        (true, Some(" ".into()))
    );
    assert_eq!(
        made(&pod(Value::Null, Value::Null), false)
            .unwrap()
            .app_armor,
        AppArmor::Unsaid
    );
}

#[test]
fn app_armor_is_needed_where_anything_names_it() {
    let unconfined = || json!({ "appArmorProfile": { "type": "Unconfined" } });
    assert_eq!(
        needs_app_armor(&pod(unconfined(), unconfined())),
        (false, None)
    );
    let own = json!({ "appArmorProfile": { "type": "RuntimeDefault" } });
    assert_eq!(needs_app_armor(&pod(unconfined(), own)), (true, None));
    for (container, value, is_needed) in [
        ("main", "unconfined", false),
        ("main", "runtime/default", true),
        ("main", "odd", true),
        ("nobody", "localhost/x", true),
    ] {
        let mut annotated = pod(Value::Null, unconfined());
        let key = format!("{APP_ARMOR_ANNOTATION}{container}");
        annotated.metadata.annotations = Some([(key, value.to_owned())].into());
        let needed = needs_app_armor(&annotated);
        assert_eq!(needed, (is_needed, None), "{container}: {value}");
    }
}

#[test]
fn privileges_are_escalated_unless_that_is_refused() {
    let allowed = |own| {
        made(&pod(Value::Null, own), false)
            .unwrap()
            .allow_privilege_escalation
    };
    assert!(allowed(Value::Null));
    assert!(allowed(json!({ "allowPrivilegeEscalation": true })));
    assert!(!allowed(json!({ "allowPrivilegeEscalation": false })));
    for capability in ["SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"] {
        let capabilities = json!({ "add": [capability] });
        let own = json!({ "allowPrivilegeEscalation": false, "capabilities": capabilities });
        assert!(!allowed(own), "{capability}");
    }
}

fn non_root(of_pod: Value, own: Value, image_user: &str) -> Result<(), String> {
    let pod = pod(of_pod, own);
    check_non_root(&pod, &state::spec(&pod).containers[0], image_user)
}

#[test]
fn users_that_are_or_may_be_root_are_refused() {
    let place = "(pod: \"web_default(1)\", container: main)";
    let asked = || json!({ "runAsNonRoot": true });
    assert_eq!(non_root(Value::Null, Value::Null, "0"), Ok(()));
    assert_eq!(non_root(asked(), Value::Null, "1000:0"), Ok(()));
    assert_eq!(
        non_root(asked(), json!({ "runAsNonRoot": false }), "0"),
        Ok(())
    );
    assert_eq!(non_root(asked(), json!({ "runAsUser": 5 }), "0"), Ok(()));
    for (own, user, expected) in [
        (
            json!({ "runAsUser": 0 }),
            "5",
            "container's runAsUser breaks non-root policy",
        ),
        (
            Value::Null,
            "",
            "container has runAsNonRoot and image will run as root",
        ),
        (
            Value::Null,
            "0",
            "container has runAsNonRoot and image will run as root",
        ),
        (
            Value::Null,
            "root",
            "container has runAsNonRoot and image has non-numeric user (root), cannot verify user \
             is non-root",
        ),
        (
            Value::Null,
            "-1",
            "container has runAsNonRoot and image has an invalid user id (-1). (Must be \
             1-(2147483647)): must be between 0 and 2147483647, inclusive",
        ),
    ] {
        assert_eq!(
            non_root(asked(), own, user),
            Err(format!("{expected} {place}"))
        );
    }
}
