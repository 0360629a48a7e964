//! What upstream v1.36 answered, request by request.

use super::*;

fn kind(text: &str) -> Kind<'_> {
    let (api_version, kind) = text.rsplit_once(' ').unwrap();
    Kind { api_version, kind }
}

fn check(expected: &str, found: &str, answer: &str) {
    let refusal = refusal(kind(expected), kind(found));
    assert_eq!(
        refusal.as_deref().unwrap_or("taken"),
        answer,
        "{found} as {expected}"
    );
}

#[test]
fn what_is_left_out_is_as_the_endpoint_has_it() {
    for found in [
        "v1 ConfigMap",
        " ConfigMap",
        "v1 ",
        " ",
        "/ ConfigMap",
        "/v1 ConfigMap",
    ] {
        check("v1 ConfigMap", found, "taken");
    }
    check("policy/v1 Eviction", "policy/v1beta1 Eviction", "taken");
}

#[test]
fn kinds_that_nobody_knows() {
    let legacy = "in scheme \"pkg/api/legacyscheme/scheme.go:30\"";
    for (expected, found, shown, version, registered) in [
        (
            "v1 ConfigMap",
            "v1 Foo",
            "Foo",
            "v1",
            "\"Foo\" is registered for version \"v1\"",
        ),
        (
            "v1 ConfigMap",
            " Foo",
            "Foo",
            "v1",
            "\"Foo\" is registered for version \"v1\"",
        ),
        (
            "v1 ConfigMap",
            "foo/v1 ",
            "ConfigMap",
            "v1",
            "\"ConfigMap\" is registered for version \"foo/v1\"",
        ),
        (
            "apps/v1 Deployment",
            "v1 Deployment",
            "Deployment",
            "v1",
            "\"Deployment\" is registered for version \"v1\"",
        ),
        (
            "v1 ConfigMap",
            "apiregistration.k8s.io/v1 APIService",
            "APIService",
            "v1",
            "\"APIService\" is registered for version \"apiregistration.k8s.io/v1\"",
        ),
    ] {
        let as_a = expected.rsplit_once(' ').unwrap().1;
        check(
            expected,
            found,
            &format!(
                "{shown} in version \"{version}\" cannot be handled as a {as_a}: no kind \
                 {registered} {legacy}"
            ),
        );
    }
    check(
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        "v1 Event",
        "Event in version \"v1\" cannot be handled as a CustomResourceDefinition: no kind \
         \"Event\" is registered for version \"v1\" in scheme \
         \"k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55\"",
    );
}

#[test]
fn kinds_that_are_others() {
    for (expected, found, answer) in [
        (
            "v1 ConfigMap",
            "v1 Secret",
            "(v1.Secret) to (core.ConfigMap)",
        ),
        (
            "v1 ConfigMap",
            "apps/v1 Deployment",
            "(v1.Deployment) to (core.ConfigMap)",
        ),
        (
            "v1 ConfigMap",
            "v1 ConfigMapList",
            "(v1.ConfigMapList) to (core.ConfigMap)",
        ),
        (
            "v1 ConfigMap",
            "v1 WatchEvent",
            "(v1.WatchEvent) to (core.ConfigMap)",
        ),
        (
            "v1 ConfigMap",
            "autoscaling/v1 Scale",
            "(v1.Scale) to (core.ConfigMap)",
        ),
        (
            "v1 Binding",
            "policy/v1 Eviction",
            "(v1.Eviction) to (core.Binding)",
        ),
        (
            "autoscaling/v1 Scale",
            "apps/v1 Deployment",
            "(v1.Deployment) to (autoscaling.Scale)",
        ),
    ] {
        let refusal = refusal(kind(expected), kind(found)).unwrap();
        let end = format!(": converting {answer}: unknown conversion");
        assert!(refusal.ends_with(&end), "{refusal}");
    }
}

#[test]
fn kinds_of_another_version() {
    for (expected, found) in [
        ("apps/v1 Deployment", "apps/v1beta1 Deployment"),
        ("v1 Event", "events.k8s.io/v1 Event"),
        (
            "autoscaling/v2 HorizontalPodAutoscaler",
            "autoscaling/v1 HorizontalPodAutoscaler",
        ),
    ] {
        let (wanted, given) = (kind(expected).api_version, kind(found).api_version);
        check(
            expected,
            found,
            &format!(
                "the API version in the data ({given}) does not match the expected API version \
                 ({wanted})"
            ),
        );
    }
}

#[test]
fn options_of_a_deletion_are_taken_from_any_version() {
    assert_eq!(options_refusal(kind("foo/v9 DeleteOptions")), None);
    assert_eq!(options_refusal(kind("foo/v9 ")), None);
    assert_eq!(
        options_refusal(kind(" Foo")).unwrap(),
        "no kind \"Foo\" is registered for version \"meta.k8s.io/v1\" in scheme \
         \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""
    );
}
