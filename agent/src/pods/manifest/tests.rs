//! Files of static pods, good and bad.

use super::{annotation, is_mirror, is_static, of_server, parse};
use expect_test::{Expect, expect};
use std::path::Path;
use std::sync::Arc;

const PLAIN: &str = "
apiVersion: v1
kind: Pod
metadata: { name: web, labels: { app: web } }
spec: { containers: [ { name: web, image: 'web:1' } ] }
";

fn read(text: &str) -> Result<k8s_openapi::api::core::v1::Pod, String> {
    parse(text, Path::new("/etc/pods/web.yaml"), "edge-1")
}

#[track_caller]
fn refuses(text: &str, expected: Expect) {
    expected.assert_eq(&read(text).unwrap_err());
}

#[test]
fn a_file_is_a_pod_of_this_node() {
    let pod = read(PLAIN).unwrap();
    let meta = &pod.metadata;
    let uid = meta.uid.as_deref().unwrap();
    assert_eq!(meta.name.as_deref(), Some("web-edge-1"));
    assert_eq!(meta.namespace.as_deref(), Some("default"));
    assert_eq!((uid.len(), annotation(&pod, super::HASH)), (32, Some(uid)));
    assert!(is_static(&pod) && !is_mirror(&pod));
    let spec = pod.spec.as_ref().unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("edge-1"));
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
    let status = pod.status.as_ref().unwrap();
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    let toleration = &spec.tolerations.as_ref().unwrap()[0];
    assert_eq!(toleration.effect.as_deref(), Some("NoExecute"));
}

#[test]
fn what_is_in_it_makes_its_uid() {
    let uid = |text: &str| read(text).unwrap().metadata.uid.unwrap();
    assert_eq!(uid(PLAIN), uid(&format!("# a comment\n{PLAIN}")));
    assert_ne!(uid(PLAIN), uid(&PLAIN.replace("web:1", "web:2")));
    let elsewhere = parse(PLAIN, Path::new("/etc/pods/other.yaml"), "edge-1").unwrap();
    assert_ne!(elsewhere.metadata.uid.unwrap(), uid(PLAIN));
}

#[test]
fn a_uid_that_is_written_in_a_file_is_not_its_uid() {
    let named = PLAIN.replace("name: web, labels", "name: web, uid: ../.., labels");
    let uid = |file: &str| {
        let pod = parse(&named, Path::new(file), "edge-1").unwrap();
        assert_eq!(annotation(&pod, super::HASH), pod.metadata.uid.as_deref());
        pod.metadata.uid.unwrap()
    };
    let (one, other) = (uid("/etc/pods/one.yaml"), uid("/etc/pods/other.yaml"));
    assert!(one.len() == 32 && one.bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert_ne!(one, other);
}

#[test]
fn a_pod_of_the_server_is_no_static_pod_whatever_it_says() {
    let says = Arc::new(read(PLAIN).unwrap());
    let pod = of_server(&says);
    assert!(is_static(&says) && !is_static(&pod));
    assert_eq!(annotation(&pod, super::SOURCE), Some("api"));
    assert_eq!(pod.spec, says.spec);
    // Others are not copied.
    assert!(Arc::ptr_eq(&of_server(&pod), &pod));
}

#[test]
fn what_is_wrong_is_said() {
    refuses(
        "{",
        expect!["did not find expected node content at line 2 column 1, while parsing a flow node"],
    );
    refuses(
        "kind: Service\napiVersion: v1",
        expect![[r#"it holds no Pod of v1, but apiVersion "v1" and kind "Service""#]],
    );
    refuses(
        &PLAIN.replace("name: web, labels", "labels"),
        expect!["invalid pod: name is needed for the pod"],
    );
    refuses(
        &PLAIN.replace("image: 'web:1'", "image: 7"),
        expect!["invalid type: integer `7`, expected a string"],
    );
    refuses(
        &PLAIN.replace(", image: 'web:1'", ""),
        expect!["invalid pod: spec.containers[0].image: Required value"],
    );
    let error = read(&PLAIN.replace("name: web, image", "name: WEB, image")).unwrap_err();
    assert!(error.starts_with("invalid pod: spec.containers[0].name: Invalid value: \"WEB\""));
    for (more, what) in [
        ("serviceAccountName: me", "serviceaccounts"),
        ("imagePullSecrets: [ { name: s } ]", "secrets"),
        (
            "volumes: [ { name: v, configMap: { name: m } } ]",
            "configmaps (via configmap volumes)",
        ),
        (
            "volumes: [ { name: v, persistentVolumeClaim: { claimName: c } } ]",
            "persistentvolumeclaims",
        ),
    ] {
        let text = PLAIN.replace("spec: { ", &format!("spec: {{ {more}, "));
        assert_eq!(
            read(&text).unwrap_err(),
            format!("static pods may not reference {what}")
        );
    }
}
