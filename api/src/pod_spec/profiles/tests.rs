//! Profiles that a pod's annotations name beside its fields, or instead of them.

use super::*;
use expect_test::expect;

const A: &str = "container.apparmor.security.beta.kubernetes.io/a";
const S: &str = "container.seccomp.security.alpha.kubernetes.io/a";

fn spec(of_pod: Value, of_container: Value) -> Value {
    json!({
        "securityContext": of_pod,
        "containers": [{ "name": "a", "securityContext": of_container }],
    })
}

fn text(errors: &ErrorList) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

#[test]
fn annotations_have_a_form() {
    let path = Path::root("metadata").child("annotations");
    let all = json!({
        SECCOMP_POD: "docker/default",
        S: "localhost/../x",
        "container.seccomp.security.alpha.kubernetes.io/b": "localhost",
        A: "unconfine",
        "container.apparmor.security.beta.kubernetes.io/b": "localhost/x",
    });
    let errors = annotations(&all, &spec(json!({}), json!({})), &path);
    expect![[r#"
        metadata.annotations.container.seccomp.security.alpha.kubernetes.io/a: Invalid value: "../x": must not contain '..'
        metadata.annotations.container.seccomp.security.alpha.kubernetes.io/b: Invalid value: "localhost": must be a valid seccomp profile
        metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: Invalid value: "unconfine": invalid AppArmor profile name: "unconfine"
        metadata.annotations[container.apparmor.security.beta.kubernetes.io/b]: Invalid value: "b": container not found"#]]
    .assert_eq(&text(&errors));
}

#[test]
fn annotation_and_field_agree() {
    let agrees = |key: &str, annotation: &str, field: &str, profile: Value| {
        let spec = match key {
            SECCOMP_POD => spec(json!({ field: profile }), json!({})),
            _ => spec(json!({}), json!({ field: profile })),
        };
        let all = json!({ key: annotation });
        text(&disagreements(&all, &spec, &Path::root("spec")))
    };
    let default = || json!({ "type": "RuntimeDefault" });
    let local = || json!({ "type": "Localhost", "localhostProfile": "x" });
    let seccomp = "seccompProfile";
    assert_eq!(
        agrees(SECCOMP_POD, "docker/default", seccomp, default()),
        ""
    );
    assert_eq!(agrees(S, "localhost/x", seccomp, local()), "");
    assert_eq!(
        agrees(A, "runtime/default", "appArmorProfile", default()),
        ""
    );
    assert_eq!(agrees(A, "localhost/x", "appArmorProfile", local()), "");
    let wrong = [
        agrees(SECCOMP_POD, "unconfined", seccomp, default()),
        agrees(S, "runtime/default", seccomp, local()),
        agrees(S, "localhost/y", seccomp, local()),
        agrees(A, "docker/default", "appArmorProfile", default()),
        agrees(A, "localhost/y", "appArmorProfile", local()),
    ];
    expect![[r#"
        spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match
        spec.containers[0].securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match
        spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match
        spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match
        spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match"#]]
    .assert_eq(&wrong.join("\n"));
    // The pod's own profile counts for a container that has none.
    let of_pod = spec(json!({ "appArmorProfile": default() }), json!({}));
    let all = json!({ A: "unconfined" });
    assert_eq!(disagreements(&all, &of_pod, &Path::root("spec")).len(), 1);
    let mut windows = of_pod;
    windows["os"] = json!({ "name": "windows" });
    assert_eq!(
        text(&disagreements(&all, &windows, &Path::root("spec"))),
        ""
    );
}

#[test]
fn app_armor_of_old_becomes_a_field() {
    let synced = |annotation: &str, of_pod: Value, of_container: Value| {
        let (all, mut spec) = (json!({ A: annotation }), spec(of_pod, of_container));
        let warnings = apparmor_of_pod(&all, &spec).len();
        annotations_to_fields(&all, &mut spec);
        let field = &spec["containers"][0]["securityContext"]["appArmorProfile"];
        (field.clone(), warnings)
    };
    let profile = |kind: &str| json!({ "appArmorProfile": { "type": kind } });
    let unconfined = json!({ "type": "Unconfined" });
    let local = json!({ "type": "Localhost", "localhostProfile": "x" });
    assert_eq!(
        synced("unconfined", json!({}), Value::Null),
        (unconfined.clone(), 1)
    );
    assert_eq!(synced("localhost/x", json!({}), json!({})), (local, 1));
    // Nothing that is not there already, and nothing that is no profile.
    assert_eq!(
        synced("unconfined", profile("Unconfined"), json!({})),
        (Value::Null, 0)
    );
    assert_eq!(synced("localhost/", json!({}), json!({})), (Value::Null, 1));
    assert_eq!(
        synced("localhost/ x", json!({}), json!({})),
        (Value::Null, 1)
    );
    // A field stays as it is.
    let kept = synced("runtime/default", json!({}), profile("Unconfined"));
    assert_eq!(kept, (unconfined, 0));
}
