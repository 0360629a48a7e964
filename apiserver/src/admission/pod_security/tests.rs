//! Each rule with what breaks it, at the releases that changed it; and what is said to whom.

use super::checks::{Subject, evaluate};
use super::level::{Level, LevelVersion, Version};
use super::*;
use crate::admission::tests::{Asked, Bench, as_user, bench};
use crate::authenticate::User;
use crate::warnings::Warnings;
use expect_test::{Expect, expect};
use serde_json::json;

/// A pod that the restricted level lets in, with changes.
fn pod(changes: &[(&str, Value)]) -> Value {
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "web" },
        "spec": {
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [container("a")],
            "initContainers": [container("b")],
        },
    });
    for (pointer, value) in changes {
        set(&mut pod, pointer, value.clone());
    }
    pod
}

fn container(name: &str) -> Value {
    json!({
        "name": name,
        "image": "i",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
        },
    })
}

/// Sets what a JSON pointer names, with the objects on the way to it; null takes it away.
fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let mut inner = value;
    for part in parent.split('/').skip(1) {
        inner = match part.parse::<usize>() {
            Ok(place) => &mut inner[place],
            Err(_) => &mut inner[part],
        };
    }
    let last = last.replace("~1", "/");
    if new.is_null() {
        inner.as_object_mut().unwrap().remove(&last);
    } else {
        inner[last] = new;
    }
}

fn told(level: Level, version: Version, pod: &Value) -> String {
    let subject = Subject {
        annotations: &pod["metadata"]["annotations"],
        spec: &pod["spec"],
    };
    let wanted = LevelVersion { level, version };
    match evaluate(wanted, subject).as_slice() {
        [] => "allowed".to_owned(),
        violations => details(violations),
    }
}

/// What both levels say, at the newest release or at an older one.
fn check_at(version: Version, changes: &[(&str, Value)], expected: Expect) {
    let pod = pod(changes);
    let text = [Level::Baseline, Level::Restricted].map(|level| told(level, version, &pod));
    let text = if text[0] == text[1] {
        text[0].clone()
    } else {
        text.join("\n")
    };
    expected.assert_eq(&text);
}

fn check(changes: &[(&str, Value)], expected: Expect) {
    check_at(Version::Latest, changes, expected);
}

const A: &str = "/spec/containers/0/securityContext";
const B: &str = "/spec/initContainers/0/securityContext";

fn of(context: &str, field: &str) -> String {
    format!("{context}/{field}")
}

#[test]
fn nothing_is_said_of_a_restricted_pod() {
    check(&[], expect!["allowed"]);
    let unheld = json!({ "containers": [{ "name": "a" }, { "name": "c" }] });
    let bare = json!({ "metadata": {}, "spec": unheld });
    expect!["allowed"].assert_eq(&told(Level::Privileged, Version::Latest, &bare));
    expect!["allowed"].assert_eq(&told(Level::Baseline, Version::Latest, &bare));
    expect![[r#"allowPrivilegeEscalation != false (containers "a", "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "a", "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "a", "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "a", "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#]]
        .assert_eq(&told(Level::Restricted, Version::Latest, &bare));
    expect![[r#"runAsNonRoot != true (pod or containers "a", "c" must set securityContext.runAsNonRoot=true)"#]]
        .assert_eq(&told(Level::Restricted, Version::Minor(7), &bare));
}

#[test]
fn the_node_s_namespaces_paths_and_ports_are_its_own() {
    check(
        &[
            ("/spec/hostNetwork", true.into()),
            ("/spec/hostIPC", true.into()),
        ],
        expect!["host namespaces (hostNetwork=true, hostIPC=true)"],
    );
    check(
        &[(
            "/spec/volumes",
            json!([{ "name": "v", "hostPath": {} }, { "name": "w", "nfs": {} }]),
        )],
        expect![[r#"
            hostPath volumes (volume "v")
            restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")"#]],
    );
    check(
        &[(
            "/spec/volumes",
            json!([{ "name": "v", "emptyDir": {} }, { "name": "w" }]),
        )],
        expect![[r#"
            allowed
            restricted volume types (volume "w" uses restricted volume type "unknown")"#]],
    );
    check(
        &[
            (
                "/spec/containers/0/ports",
                json!([{ "hostPort": 9000 }, { "hostPort": 80 }]),
            ),
            ("/spec/initContainers/0/ports", json!([{ "hostPort": 0 }])),
        ],
        expect![[r#"hostPort (container "a" uses hostPorts 80, 9000)"#]],
    );
    check(
        &[
            ("/spec/containers/0/ports", json!([{ "hostPort": 80 }])),
            ("/spec/initContainers/0/ports", json!([{ "hostPort": 80 }])),
        ],
        expect![[r#"hostPort (containers "b", "a" use hostPort 80)"#]],
    );
}

#[test]
fn probes_go_to_the_pod_itself() {
    let probes = [
        (
            "/spec/containers/0/livenessProbe",
            json!({ "httpGet": { "host": "b" } }),
        ),
        (
            "/spec/containers/0/lifecycle",
            json!({ "preStop": { "tcpSocket": { "host": "a" } } }),
        ),
        (
            "/spec/initContainers/0/startupProbe",
            json!({ "tcpSocket": { "host": "a" } }),
        ),
    ];
    check(
        &probes,
        expect![[
            r#"probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "a", "b")"#
        ]],
    );
    check(
        &probes[..1],
        expect![[r#"probe or lifecycle host (container "a" uses probe or lifecycle host "b")"#]],
    );
    check_at(Version::Minor(33), &probes, expect!["allowed"]);
}

#[test]
fn processes_have_no_more_privileges_than_a_level_gives() {
    check(
        &[(&of(A, "privileged"), true.into())],
        expect![[r#"privileged (container "a" must not set securityContext.privileged=true)"#]],
    );
    check(
        &[(&of(A, "allowPrivilegeEscalation"), Value::Null)],
        expect![[r#"
            allowed
            allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)"#]],
    );
    check(
        &[
            (
                &of(A, "capabilities"),
                json!({ "add": ["SYS_ADMIN", "NET_RAW", "CHOWN"] }),
            ),
            (
                &of(B, "capabilities"),
                json!({ "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] }),
            ),
        ],
        expect![[r#"
            non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)
            unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; container "a" must not include "CHOWN", "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)"#]],
    );
    check_at(
        Version::Minor(21),
        &[(&of(A, "capabilities"), json!({ "add": ["NET_RAW"] }))],
        expect![[
            r#"non-default capabilities (container "a" must not include "NET_RAW" in securityContext.capabilities.add)"#
        ]],
    );
    check(
        &[(&of(A, "windowsOptions"), json!({ "hostProcess": true }))],
        expect![[
            r#"hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)"#
        ]],
    );
    let windows = [
        ("/spec/os", json!({ "name": "windows" })),
        ("/spec/containers", json!([{ "name": "a" }])),
        ("/spec/securityContext", json!({ "runAsNonRoot": true })),
    ];
    check(&windows, expect!["allowed"]);
    check_at(
        Version::Minor(24),
        &windows,
        expect![[r#"
        allowed
        allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), seccompProfile (pod or containers "b", "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#]],
    );
}

#[test]
fn nobody_is_root() {
    check(
        &[("/spec/securityContext/runAsNonRoot", Value::Null)],
        expect![[r#"
            allowed
            runAsNonRoot != true (pod or containers "b", "a" must set securityContext.runAsNonRoot=true)"#]],
    );
    check(
        &[
            ("/spec/securityContext/runAsNonRoot", false.into()),
            (&of(A, "runAsNonRoot"), false.into()),
        ],
        expect![[r#"
            allowed
            runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)"#]],
    );
    let root = [
        ("/spec/securityContext/runAsUser", 0.into()),
        (&*of(A, "runAsUser"), 0.into()),
        (&*of(B, "runAsUser"), 7.into()),
    ];
    check(
        &root,
        expect![[r#"
        allowed
        runAsUser=0 (pod and container "a" must not set runAsUser=0)"#]],
    );
    check_at(Version::Minor(22), &root, expect!["allowed"]);
    let own = [
        ("/spec/hostUsers", false.into()),
        ("/spec/securityContext/runAsUser", 0.into()),
        ("/spec/securityContext/runAsNonRoot", Value::Null),
        (&*of(A, "procMount"), "Unmasked".into()),
    ];
    check(
        &own,
        expect![[r#"
        allowed
        procMount (container "a" must not set securityContext.procMount to "Unmasked")"#]],
    );
    check_at(
        Version::Minor(34),
        &own,
        expect![[r#"
        procMount (container "a" must not set securityContext.procMount to "Unmasked")
        procMount (container "a" must not set securityContext.procMount to "Unmasked"), runAsNonRoot != true (pod or containers "b", "a" must set securityContext.runAsNonRoot=true), runAsUser=0 (pod must not set runAsUser=0)"#]],
    );
}

#[test]
fn profiles_hold() {
    let app_armor = "/metadata/annotations";
    check(
        &[
            (
                "/spec/securityContext/appArmorProfile",
                json!({ "type": "Unconfined" }),
            ),
            (&of(A, "appArmorProfile"), json!({ "type": "Unconfined" })),
            (&of(B, "appArmorProfile"), json!({ "type": "Localhost" })),
            (
                app_armor,
                json!({
                    "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
                    "container.apparmor.security.beta.kubernetes.io/b": "runtime/default",
                }),
            ),
        ],
        expect![[
            r#"forbidden AppArmor profiles (pod and container "a" and annotation must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/a="unconfined"")"#
        ]],
    );
    check(
        &[
            (
                "/spec/securityContext/seLinuxOptions",
                json!({ "type": "spc_t", "role": "r" }),
            ),
            (
                &of(A, "seLinuxOptions"),
                json!({ "type": "other_t", "user": "u" }),
            ),
            (
                &of(B, "seLinuxOptions"),
                json!({ "type": "container_t", "level": "s0" }),
            ),
        ],
        expect![[
            r#"seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: types "other_t", "spc_t"; user may not be set; role may not be set)"#
        ]],
    );
    let engine = [(
        &*of(A, "seLinuxOptions"),
        json!({ "type": "container_engine_t" }),
    )];
    check(&engine, expect!["allowed"]);
    check_at(
        Version::Minor(30),
        &engine,
        expect![[
            r#"seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: type "container_engine_t")"#
        ]],
    );
}

#[test]
fn seccomp_holds_and_proc_is_masked() {
    let seccomp = [
        (
            "/spec/securityContext/seccompProfile",
            json!({ "type": "Unconfined" }),
        ),
        (&*of(A, "seccompProfile"), json!({ "type": "Localhost" })),
        (&*of(B, "seccompProfile"), json!({ "type": "Unconfined" })),
    ];
    check(
        &seccomp,
        expect![[
            r#"seccompProfile (pod and container "b" must not set securityContext.seccompProfile.type to "Unconfined")"#
        ]],
    );
    check_at(Version::Minor(18), &seccomp, expect!["allowed"]);
    check(
        &[
            ("/spec/securityContext/seccompProfile", Value::Null),
            (&of(A, "seccompProfile"), json!({ "type": "Localhost" })),
        ],
        expect![[r#"
            allowed
            seccompProfile (pod or container "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#]],
    );
    check_at(
        Version::Minor(18),
        &[(
            "/metadata/annotations",
            json!({
                "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
                "container.seccomp.security.alpha.kubernetes.io/a": "localhost/x",
                "container.seccomp.security.alpha.kubernetes.io/b": "",
            }),
        )],
        expect![[
            r#"seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/b="", seccomp.security.alpha.kubernetes.io/pod="unconfined")"#
        ]],
    );
    check(
        &[(&of(A, "procMount"), "Unmasked".into())],
        expect![[
            r#"procMount (container "a" must not set securityContext.procMount to "Unmasked")"#
        ]],
    );
}

#[test]
fn sysctls_are_safe_ones() {
    let all = [
        "kernel.shm_rmid_forced",
        "net.ipv4.tcp_rmem",
        "kernel.msgmax",
        "kernel.shm",
    ];
    let all: Vec<Value> = all.iter().map(|name| json!({ "name": name })).collect();
    let sysctls = [("/spec/securityContext/sysctls", json!(all))];
    check(
        &sysctls,
        expect!["forbidden sysctls (kernel.msgmax, kernel.shm)"],
    );
    check_at(
        Version::Minor(31),
        &sysctls,
        expect!["forbidden sysctls (net.ipv4.tcp_rmem, kernel.msgmax, kernel.shm)"],
    );
}

#[test]
fn ephemeral_containers_count_too() {
    check(
        &[("/spec/ephemeralContainers", json!([{ "name": "debug" }]))],
        expect![[r#"
            allowed
            allowPrivilegeEscalation != false (container "debug" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "debug" must set securityContext.capabilities.drop=["ALL"])"#]],
    );
}

#[test]
fn labels_are_read_and_refused() {
    let policy = |labels: &[(&str, &str)]| {
        let find = |wanted: &str| {
            let mut labels = labels.iter();
            labels
                .find(|(name, _)| wanted.ends_with(name))
                .map(|(_, value)| *value)
        };
        let (policy, errors) = level::policy(find, Policy::default());
        let modes = [policy.enforce, policy.audit, policy.warn];
        let mut texts: Vec<String> = modes.iter().map(ToString::to_string).collect();
        texts.extend(errors.iter().map(ToString::to_string));
        texts.join("\n")
    };
    expect![[r#"
        privileged:latest
        privileged:latest
        privileged:latest"#]]
    .assert_eq(&policy(&[]));
    expect![[r#"
        baseline:v1.20
        privileged:latest
        baseline:v1.20"#]]
    .assert_eq(&policy(&[
        ("/enforce", "baseline"),
        ("/enforce-version", "v1.20"),
    ]));
    let both = [
        ("/enforce", "baseline"),
        ("/warn", "privileged"),
        ("/audit", "restricted"),
    ];
    expect![[r#"
        baseline:latest
        restricted:latest
        privileged:latest"#]]
    .assert_eq(&policy(&both));
    let bad = [
        ("/enforce", "strict"),
        ("/enforce-version", "1.20"),
        ("/audit", ""),
        ("/audit-version", "v1.020"),
        ("/warn", "x"),
        ("/warn-version", "v1.99999999999"),
    ];
    expect![[r#"
        restricted:latest
        privileged:latest
        privileged:latest
        metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted
        metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "1.20": must be "latest" or "v1.x"
        metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "": must be one of privileged, baseline, restricted
        metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: "v1.020": must be "latest" or "v1.x"
        metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "x": must be one of privileged, baseline, restricted
        metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "v1.99999999999": must be "latest" or "v1.x""#]].assert_eq(&policy(&bad));
}

fn site(labels: Value, objects: Vec<(&'static str, Value)>) -> Bench {
    let bench = bench(objects);
    let namespace = json!({ "metadata": { "name": "web", "labels": labels } });
    bench.view.put("namespaces", namespace);
    bench
}

/// The refusal, or else all warnings.
async fn answer(bench: &Bench, asked: &Asked<'_>, object: Value) -> String {
    match bench.admit(asked, Some(object)).await {
        Err(refusal) => refusal,
        Ok(_) => asked.warnings.texts().join("\n"),
    }
}

fn enforce(level: &str) -> Value {
    json!({ "pod-security.kubernetes.io/enforce": level })
}

#[tokio::test]
async fn pods_are_refused_and_workloads_warned_of() {
    let jane = User::named("jane");
    let bench = site(enforce("baseline"), vec![]);
    let bad = pod(&[("/spec/hostPID", true.into())]);
    let create = "CREATE pods web p";
    expect![[r#"pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)"#]].assert_eq(&answer(&bench, &as_user(&jane, create), bad.clone()).await);
    for (kind, object) in [
        ("deployments", json!({ "spec": { "template": bad } })),
        ("podtemplates", json!({ "template": bad })),
        (
            "cronjobs",
            json!({ "spec": { "jobTemplate": { "spec": { "template": bad } } } }),
        ),
    ] {
        let text = format!("CREATE {kind} web x");
        let warned = answer(&bench, &as_user(&jane, &text), object).await;
        expect![[r#"would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)"#]]
            .assert_eq(&warned);
    }
    let none = json!({ "spec": {} });
    let asked = as_user(&jane, "CREATE replicationcontrollers web x");
    assert_eq!(answer(&bench, &asked, none).await, "");
    let warning = json!({
        "pod-security.kubernetes.io/enforce": "privileged",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/warn-version": "v1.19",
    });
    let bench = site(warning, vec![]);
    let mild = pod(&[("/spec/securityContext/runAsNonRoot", Value::Null)]);
    expect![[r#"would violate PodSecurity "restricted:v1.19": runAsNonRoot != true (pod or containers "b", "a" must set securityContext.runAsNonRoot=true)"#]].assert_eq(&answer(&bench, &as_user(&jane, create), mild).await);
}

#[tokio::test]
async fn updates_count_when_they_bring_in_an_image() {
    let jane = User::named("jane");
    let bench = site(enforce("restricted"), vec![]);
    let before = pod(&[
        ("/spec/hostPID", true.into()),
        ("/spec/serviceAccountName", "x".into()),
    ]);
    let old = Object::from_value(before.clone()).unwrap();
    let asked = |text| Asked {
        user: &jane,
        text,
        old: Some(&old),
        warnings: Warnings::default(),
    };
    let mut same = before.clone();
    set(&mut same, "/metadata/labels", json!({ "a": "b" }));
    assert_eq!(answer(&bench, &asked("UPDATE pods web p"), same).await, "");
    let mut other = before.clone();
    set(&mut other, "/spec/containers/0/image", "other".into());
    let refused = answer(&bench, &asked("UPDATE pods web p"), other.clone()).await;
    expect![[r#"pods "p" is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostPID=true)"#]].assert_eq(&refused);
    assert_eq!(
        answer(&bench, &asked("UPDATE pods/status web p"), other).await,
        ""
    );
    let account = json!({ "metadata": { "name": "x", "namespace": "web" } });
    bench.view.put("serviceaccounts", account);
    let mut debugged = before;
    set(
        &mut debugged,
        "/spec/ephemeralContainers",
        json!([container("debug")]),
    );
    let text = "UPDATE pods/ephemeralcontainers web p";
    expect![[r#"pods "p" is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostPID=true)"#]].assert_eq(&answer(&bench, &asked(text), debugged).await);
}

#[tokio::test]
async fn a_namespace_that_becomes_stricter_is_told_of_its_pods() {
    let jane = User::named("jane");
    let named = |name: &str, changes: &[(&str, Value)]| {
        let mut pod = pod(changes);
        pod["metadata"]["name"] = name.into();
        ("pods", pod)
    };
    let bench = site(
        json!({}),
        vec![
            named("c", &[("/spec/hostPID", true.into())]),
            named("b", &[("/spec/hostPID", true.into())]),
            named("a", &[("/spec/hostPID", true.into())]),
            named("d", &[(&of(A, "privileged"), true.into())]),
            named("good", &[]),
        ],
    );
    let namespace = |labels: Value| json!({ "metadata": { "name": "web", "labels": labels } });
    let update = async |old: Value, new: Value| {
        let old = Object::from_value(namespace(old)).unwrap();
        let asked = Asked {
            user: &jane,
            text: "UPDATE namespaces web web",
            old: Some(&old),
            warnings: Warnings::default(),
        };
        answer(&bench, &asked, namespace(new)).await
    };
    expect![[r#"
        existing pods in namespace "web" violate the new PodSecurity enforce level "baseline:latest"
        a (and 2 other pods): host namespaces
        d: privileged"#]]
    .assert_eq(&update(json!({}), enforce("baseline")).await);
    assert_eq!(update(enforce("restricted"), enforce("baseline")).await, "");
    assert_eq!(update(enforce("baseline"), enforce("privileged")).await, "");
    expect![[r#"Namespace "web" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "no": must be one of privileged, baseline, restricted"#]].assert_eq(&update(json!({}), enforce("no")).await);
    assert_eq!(update(enforce("no"), enforce("no")).await, "");
    let asked = as_user(&jane, "CREATE namespaces web web");
    expect![[r#"Namespace "web" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "no": must be one of privileged, baseline, restricted"#]].assert_eq(&answer(&bench, &asked, namespace(enforce("no"))).await);
}

#[tokio::test]
async fn the_exempt_are_not_looked_at() {
    let settings = || PodSecurity {
        exempt_namespaces: ["web".to_owned()].into(),
        exempt_users: ["joe".to_owned()].into(),
        exempt_runtime_classes: ["vm".to_owned()].into(),
        ..PodSecurity::default()
    };
    let bad = || Object::from_value(pod(&[("/spec/hostPID", true.into())])).unwrap();
    let judge = |settings: PodSecurity, user: &str, object: Object| {
        let bench = site(enforce("baseline"), vec![]);
        let user = User::named(user);
        let asked = as_user(&user, "CREATE pods web p");
        let view = bench.view.as_ref();
        let answer = settings.validate(view, &object, &asked.attributes());
        answer.is_ok()
    };
    assert!(judge(settings(), "jane", bad()));
    let mut elsewhere = settings();
    elsewhere.exempt_namespaces.clear();
    assert!(!judge(elsewhere.clone(), "jane", bad()));
    assert!(judge(elsewhere.clone(), "joe", bad()));
    let mut boxed = bad();
    boxed.set(&["spec", "runtimeClassName"], "vm".into());
    assert!(judge(elsewhere, "jane", boxed));
    let bench = site(json!({}), vec![]);
    let jane = User::named("jane");
    let asked = as_user(&jane, "CREATE namespaces web web");
    let labelled = json!({ "metadata": { "name": "web", "labels": enforce("baseline") } });
    let labelled = Object::from_value(labelled).unwrap();
    let view = bench.view.as_ref();
    settings()
        .validate(view, &labelled, &asked.attributes())
        .unwrap();
    expect![[r#"namespace "web" is exempt from Pod Security, and the policy (enforce=baseline:latest) will be ignored"#]].assert_eq(&asked.warnings.texts().join("\n"));
}
