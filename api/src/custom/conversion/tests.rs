use super::*;
use expect_test::{Expect, expect};

fn conversion() -> Conversion {
    let mut definition = Object::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let spec = json!({ "conversion": { "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v7", "v1", "v1beta1"], "clientConfig": { "url": "https://a" },
    } } });
    definition.set(&["spec"], spec);
    Conversion::of(&definition).expect("it has a webhook")
}

fn asked() -> Value {
    json!({
        "apiVersion": "a.b/v1", "kind": "Foo", "hostPort": "h:1",
        "metadata": { "name": "n", "uid": "u", "resourceVersion": "7", "labels": { "a": "1" } },
    })
}

#[track_caller]
fn check(answer: &Value, expected: Expect) {
    let made = conversion().converted("id", answer, &[asked()], "a.b/v2");
    let shown = match made {
        Ok(objects) => Value::Array(objects).to_string(),
        Err(why) => why,
    };
    expected.assert_eq(&shown);
}

fn answer(object: Value) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": {
            "uid": "id", "result": { "status": "Success" }, "convertedObjects": [object],
        },
    })
}

#[test]
fn a_review_names_what_is_wanted() {
    let review = conversion().review("id", &[json!({ "a": 1 })], "a.b/v2");
    expect![[r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"desiredAPIVersion":"a.b/v2","objects":[{"a":1}],"uid":"id"}}"#]]
        .assert_eq(&review.expect("v1 is spoken").to_string());
}

#[test]
fn metadata_stays_but_for_labels_and_annotations() {
    let converted = json!({
        "apiVersion": "a.b/v2", "kind": "Foo", "host": "h", "port": "1",
        "metadata": { "name": "n", "uid": "u", "resourceVersion": "9",
                      "annotations": { "b": "2" } },
    });
    check(
        &answer(converted),
        expect![[
            r#"[{"apiVersion":"a.b/v2","host":"h","kind":"Foo","metadata":{"annotations":{"b":"2"},"name":"n","resourceVersion":"7","uid":"u"},"port":"1"}]"#
        ]],
    );
}

#[test]
fn bad_answers_are_told() {
    let metadata = json!({ "name": "n", "uid": "u" });
    let of = |version: &str, kind: &str, metadata: &Value| {
        answer(json!({ "apiVersion": version, "kind": kind, "metadata": metadata }))
    };
    check(
        &json!({}),
        expect!["conversion webhook for a.b/v1, Kind=Foo failed: no response provided"],
    );
    check(
        &of("a.b/v3", "Foo", &metadata),
        expect![
            "conversion webhook for a.b/v1, Kind=Foo returned invalid converted object at index 0: invalid groupVersion (expected a.b/v2, received a.b/v3)"
        ],
    );
    check(
        &of("a.b/v2", "Bar", &metadata),
        expect![
            "conversion webhook for a.b/v1, Kind=Foo returned invalid converted object at index 0: invalid kind (expected Foo, received Bar)"
        ],
    );
    check(
        &of("a.b/v2", "Foo", &json!({ "name": "m", "uid": "u" })),
        expect![
            "conversion webhook for a.b/v1, Kind=Foo returned invalid converted object at index 0: must have the same name: n != m"
        ],
    );
    let mut other = of("a.b/v2", "Foo", &metadata);
    other["response"]["uid"] = "x".into();
    check(
        &other,
        expect![[
            r#"conversion webhook for a.b/v1, Kind=Foo failed: expected response.uid="id", got "x""#
        ]],
    );
    other["response"] = json!({ "uid": "id", "result": { "status": "Failed", "message": "no" } });
    check(
        &other,
        expect!["conversion webhook for a.b/v1, Kind=Foo failed: no"],
    );
}
