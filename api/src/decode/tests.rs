//! Strict and lenient decoding: unknown and double fields, wrong types, broken syntax.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";
const SECRET: &str = "io.k8s.api.core.v1.Secret";

fn check(type_name: &str, mode: FieldValidation, body: &str, expect: Expect) {
    let text = match decode(body.as_bytes(), type_name, mode) {
        Ok(decoded) => {
            let mut text = decoded.object.to_value().to_string();
            for warning in &decoded.warnings {
                text.push_str("\nwarning: ");
                text.push_str(warning);
            }
            // A parsed document gives the same.
            let mut value: Value = serde_json::from_str(body).unwrap();
            let warnings = conform(&mut value, type_name, mode).unwrap();
            assert_eq!(value, decoded.object.to_value());
            if !decoded
                .warnings
                .iter()
                .any(|text| text.contains("duplicate"))
            {
                let sorted = |mut list: Vec<String>| {
                    list.sort();
                    list
                };
                assert_eq!(sorted(warnings), sorted(decoded.warnings));
            }
            text
        }
        Err(error) => error.message("Kind", "v1", body.as_bytes()),
    };
    expect.assert_eq(&text);
}

#[test]
fn unknown_fields_are_pruned_and_told() {
    let body = r#"{"kind":"Deployment","spec":{"foo":1,"replicas":3,"Replicas":4,
        "template":{"spec":{"containers":[{"name":"a"},{"name":"b","imag":"x"}]}}},"bar":{}}"#;
    check(
        DEPLOYMENT,
        FieldValidation::Ignore,
        body,
        expect![[
            r#"{"kind":"Deployment","spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}}}"#
        ]],
    );
    check(
        DEPLOYMENT,
        FieldValidation::Warn,
        body,
        expect![[r#"
        {"kind":"Deployment","spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}}}
        warning: unknown field "spec.foo"
        warning: unknown field "spec.Replicas"
        warning: unknown field "spec.template.spec.containers[1].imag"
        warning: unknown field "bar""#]],
    );
    check(
        DEPLOYMENT,
        FieldValidation::Strict,
        body,
        expect![[
            r#"Kind in version "v1" cannot be handled as a Kind: strict decoding error: unknown field "spec.foo", unknown field "spec.Replicas", unknown field "spec.template.spec.containers[1].imag", unknown field "bar""#
        ]],
    );
}

#[test]
fn duplicates() {
    let body = r#"{"kind":"Pod","kind":"Pod","metadata":{"labels":{"a":"1","a":"2"}},
        "spec":{"nodeName":null,"nodeName":"n"}}"#;
    check(
        POD,
        FieldValidation::Warn,
        body,
        expect![[r#"
        {"kind":"Pod","metadata":{"labels":{"a":"2"}},"spec":{"nodeName":"n"}}
        warning: duplicate field "kind"
        warning: duplicate field "metadata.labels.a"
        warning: duplicate field "spec.nodeName""#]],
    );
    check(
        POD,
        FieldValidation::Strict,
        body,
        expect![[
            r#"Kind in version "v1" cannot be handled as a Kind: strict decoding error: duplicate field "kind", duplicate field "metadata.labels.a", duplicate field "spec.nodeName""#
        ]],
    );
}

#[test]
fn type_errors() {
    let bodies = [
        (DEPLOYMENT, r#"{"spec":{"replicas":"three"}}"#),
        (DEPLOYMENT, r#"{"spec":{"replicas":3000000000}}"#),
        (DEPLOYMENT, r#"{"spec":{"replicas":1.5}}"#),
        (DEPLOYMENT, r#"{"spec":[]}"#),
        (POD, r#"{"spec":{"containers":{"name":"x"}}}"#),
        (POD, r#"{"spec":{"containers":[{"image":5}]}}"#),
        (POD, r#"{"spec":{"containers":[{"imagePullPolicy":5}]}}"#),
        (
            POD,
            r#"{"spec":{"containers":[{"resources":{"limits":[]}}]}}"#,
        ),
        (
            POD,
            r#"{"spec":{"containers":[{"securityContext":{"capabilities":{"add":[1]}}}]}}"#,
        ),
        (POD, r#"{"metadata":{"labels":{"a":true}}}"#),
        (SECRET, r#"{"data":{"a":"!!"}}"#),
        (POD, r#"{"metadata":{"creationTimestamp":"yesterday"}}"#),
        (
            POD,
            r#"{"metadata":{"creationTimestamp":"2026-13-01T00:00:00Z"}}"#,
        ),
        (POD, r#"{"metadata":{"creationTimestamp":5}}"#),
        (
            POD,
            r#"{"spec":{"containers":[{"image":5,"resources":{"limits":{"cpu":"x1"}}}]}}"#,
        ),
        (
            "io.k8s.api.core.v1.Service",
            r#"{"spec":{"ports":[{"targetPort":true}]}}"#,
        ),
    ];
    let texts = bodies.map(|(type_name, body)| {
        let error = decode(body.as_bytes(), type_name, FieldValidation::Strict).unwrap_err();
        assert!(matches!(error, DecodeError::Type(_)));
        error.to_string() + "\n"
    });
    expect![[r#"
        json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
        json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32
        json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32
        json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec
        json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container
        json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string
        json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy
        json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList
        json: cannot unmarshal number into Go struct field Capabilities.spec.containers.securityContext.capabilities.add of type v1.Capability
        json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string
        illegal base64 data at input byte 0
        parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"
        parsing time "2026-13-01T00:00:00Z": month out of range
        json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string
        quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
        json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32
    "#]].assert_eq(&texts.concat());
}

/// Where Go cannot tell a zero value from an absent one, neither can we.
#[test]
fn zero_values() {
    check(
        POD,
        FieldValidation::Strict,
        r#"{"metadata":{"name":"","generation":0},"spec":{"hostNetwork":false,"nodeName":"",
            "enableServiceLinks":false,"priority":0,"terminationGracePeriodSeconds":0,
            "containers":[{"name":"","image":"","tty":false,"env":[{"name":"x","value":""}]}]}}"#,
        expect![[
            r#"{"metadata":{},"spec":{"containers":[{"env":[{"name":"x"}],"name":""}],"enableServiceLinks":false,"priority":0,"terminationGracePeriodSeconds":0}}"#
        ]],
    );
}

#[test]
fn syntax_errors() {
    let bodies = [
        "",
        "{",
        "hello",
        r#"{"kind" "Pod"}"#,
        r#"{"kind":"Pod",}"#,
        r#"{"kind":"Pod"} x"#,
        r#"{"spec":{"containers":[1 2]}}"#,
        "[]",
        "5",
        "null",
    ];
    let texts = bodies.map(|body| {
        let error = decode(body.as_bytes(), POD, FieldValidation::Warn).unwrap_err();
        error.message("Pod", "v1", body.as_bytes()) + "\n"
    });
    expect![[r#"
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input ({)
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'h' looking for beginning of value (68656c6c6f)
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character '"' after object key ({"kind" "Pod"})
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character '}' looking for beginning of object key string ({"kind":"Pod",})
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'x' after top-level value ({"kind":"Pod"} x)
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character '2' after array element ({"spec":{"containers":[1 2]}})
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (35)
        the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal null into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (6e756c6c)
    "#]].assert_eq(&texts.concat());
}

#[test]
fn nesting_is_bounded() {
    let deep = format!(r#"{{"data":{}"#, "[".repeat(5000));
    for type_name in [POD, "io.k8s.api.apps.v1.ControllerRevision"] {
        let error = decode(deep.as_bytes(), type_name, FieldValidation::Warn).unwrap_err();
        assert!(matches!(error, DecodeError::Syntax(_)), "{error}");
    }
}

#[test]
fn canonical_forms() {
    check(
        POD,
        FieldValidation::Strict,
        r#"{"metadata":{"creationTimestamp":null,"deletionTimestamp":"2026-01-02T03:04:05.6+02:00",
            "labels":{"a":null},"finalizers":[],"annotations":{}},
            "spec":{"containers":[{"resources":{"limits":{"cpu":1,"memory":"1024Mi"},
            "requests":{"cpu":"0.5","memory":0.5}},"command":["a",null]}],"volumes":[],
            "securityContext":{}},"status":null}"#,
        expect![[
            r#"{"metadata":{"deletionTimestamp":"2026-01-02T01:04:05Z","labels":{"a":""}},"spec":{"containers":[{"command":["a",""],"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m","memory":"500m"}}}],"securityContext":{}}}"#
        ]],
    );
    check(
        "io.k8s.api.core.v1.Service",
        FieldValidation::Strict,
        r#"{"spec":{"ports":[{"port":80,"targetPort":"http"},{"port":81,"targetPort":8081},null]}}"#,
        expect![[
            r#"{"spec":{"ports":[{"port":80,"targetPort":"http"},{"port":81,"targetPort":8081},{}]}}"#
        ]],
    );
    check(
        SECRET,
        FieldValidation::Strict,
        r#"{"data":{"a":"aGk=","b":""}}"#,
        expect![[r#"{"data":{"a":"aGk=","b":""}}"#]],
    );
}

#[test]
fn raw_documents_are_kept() {
    check(
        "io.k8s.api.apps.v1.ControllerRevision",
        FieldValidation::Strict,
        r#"{"data":{"anything":[1,null,{"x":null}]},"revision":1}"#,
        expect![[r#"{"data":{"anything":[1,null,{"x":null}]},"revision":1}"#]],
    );
}

#[test]
fn reported_fields_are_bounded() {
    let fields: Vec<String> = (0..500).map(|n| format!(r#""x{n}":1"#)).collect();
    let body = format!("{{{}}}", fields.join(","));
    let decoded = decode(body.as_bytes(), POD, FieldValidation::Warn).unwrap();
    assert_eq!(decoded.warnings.len(), 100);
}

#[test]
fn type_meta_is_found() {
    let meta = type_meta(br#"{"spec":{},"kind":"Pod","apiVersion":"v1"}"#).unwrap();
    assert_eq!(
        (meta.kind.as_str(), meta.api_version.as_str()),
        ("Pod", "v1")
    );
}

/// JSON whose field names are often those of a Pod.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9:=.-]{0,6}".prop_map(Value::from),
        Just(Value::from("2026-01-02T03:04:05Z")),
        Just(Value::from("100m")),
    ];
    let name = prop_oneof![
        Just("metadata"),
        Just("labels"),
        Just("creationTimestamp"),
        Just("spec"),
        Just("containers"),
        Just("name"),
        Just("resources"),
        Just("limits"),
        Just("ports"),
        Just("containerPort"),
        Just("hostNetwork"),
        Just("unknown"),
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..5).prop_map(|fields| {
                fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    /// What was decoded decodes to itself, without a word.
    #[test]
    fn decoding_twice_is_decoding_once(value in document()) {
        if let Ok(first) = decode(value.to_string().as_bytes(), POD, FieldValidation::Ignore) {
            let text = first.object.to_value().to_string();
            let second = decode(text.as_bytes(), POD, FieldValidation::Strict).unwrap();
            prop_assert_eq!(&first.object, &second.object);
            let mut parsed = first.object.to_value();
            conform(&mut parsed, POD, FieldValidation::Strict).unwrap();
            prop_assert_eq!(parsed, first.object.to_value());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Err(error) = decode(&bytes, POD, FieldValidation::Warn) {
            error.message("Pod", "v1", &bytes);
        }
    }
}

/// Where and at what Go's scanner stumbles. The end of a document reads as a space within a word or
/// a number.
#[test]
fn syntax_in_the_words_of_go() {
    let fault = |text: &str| super::syntax::error(text.as_bytes()).unwrap_or("none".into());
    let cases = [
        ("", "unexpected end of JSON input"),
        ("  {", "unexpected end of JSON input"),
        (r#"{"a""#, "unexpected end of JSON input"),
        (r#"{"a":"#, "unexpected end of JSON input"),
        (r#"{"a":1"#, "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        (r#""abc"#, "unexpected end of JSON input"),
        ("tru", "' ' in literal true (expecting 'e')"),
        ("[nul]", "']' in literal null (expecting 'l')"),
        ("falso", "'o' in literal false (expecting 'e')"),
        ("1.", "' ' after decimal point in numeric literal"),
        ("[1.,2]", "',' after decimal point in numeric literal"),
        ("1e+", "' ' in exponent of numeric literal"),
        ("-x", "'x' in numeric literal"),
        (r#"{"a":01}"#, "'1' after object key:value pair"),
        ("[1 2]", "'2' after array element"),
        ("{} {", "'{' after top-level value"),
        (
            r#"{"a":1,}"#,
            "'}' looking for beginning of object key string",
        ),
        ("{a:1}", "'a' looking for beginning of object key string"),
        (r#"{"a" 1}"#, "'1' after object key"),
        ("[,]", "',' looking for beginning of value"),
        ("\u{7}", r"'\a' looking for beginning of value"),
        ("'", r"'\'' looking for beginning of value"),
        ("\"a\nb\"", r"'\n' in string literal"),
        (r#""\x""#, "'x' in string escape code"),
        (r#""\u12g4""#, r"'g' in \u hexadecimal character escape"),
        (
            r#"[[], {}, {"a": [-0.5e-3, null, true, false, "\u00e4"]}] "#,
            "none",
        ),
    ];
    for (text, wanted) in cases {
        let found = fault(text);
        let found = found.strip_prefix("invalid character ").unwrap_or(&found);
        assert_eq!(found, wanted, "{text}");
        let is_parsed = serde_json::from_str::<Value>(text).is_ok();
        assert_eq!(is_parsed, wanted == "none", "{text}");
    }
    assert_eq!(fault(&"[".repeat(10_001)), "exceeded max depth");
}

/// What Go takes and our parser does not.
#[test]
fn documents_that_only_go_takes() {
    let decode = |text: &str| {
        let name = "io.k8s.api.core.v1.ConfigMap";
        match super::decode(text.as_bytes(), name, FieldValidation::Strict) {
            Ok(decoded) => decoded.object.into_value().to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(
        decode(r#"{"data":{"a":"\ud800x\udc00\ud83d\ude00\\ud800"}}"#),
        "{\"data\":{\"a\":\"\u{fffd}x\u{fffd}\u{1f600}\\\\ud800\"}}"
    );
    assert_eq!(
        decode(r#"{"data":{"a":1e400}}"#),
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    );
    assert_eq!(
        decode(r#"{"binaryData":{"a":[104,105,null]}}"#),
        r#"{"binaryData":{"a":"aGkA"}}"#
    );
    assert_eq!(
        decode(r#"{"binaryData":{"a":[1,256]}}"#),
        "json: cannot unmarshal number 256 into Go struct field ConfigMap.binaryData of type uint8"
    );
}

#[test]
fn kinds_are_found_as_go_finds_them() {
    let meta = |text: &str| match type_meta(text.as_bytes()) {
        Ok(meta) => format!("{} {}", meta.api_version, meta.kind),
        Err(error) => error.to_string(),
    };
    let folded = r#"{"KIND":"A","kind":"B","apiversion":"v1","x":[{}]}"#;
    assert_eq!(meta(folded), "v1 B");
    assert_eq!(meta(r#"{"kind":null,"apiVersion":"v1"}"#), "v1 ");
    assert_eq!(meta("null"), " ");
    assert_eq!(
        meta(r#"{"kind":[1],"apiVersion":{}}"#),
        "json: cannot unmarshal array into Go struct field .kind of type string"
    );
    let array = "json: cannot unmarshal array into Go value of type struct";
    assert!(meta("[null]").starts_with(array));
    assert!(meta(r#"{"kind":1,}"#).starts_with("invalid character '}'"));
}

/// Go names the struct that it has embedded.
#[test]
fn embedded_structs_are_named() {
    let body = json!({ "spec": { "containers": [
        { "livenessProbe": { "httpGet": { "port": true } } },
    ] } });
    let error = decode(body.to_string().as_bytes(), POD, FieldValidation::Ignore).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal bool into Go struct field \
         HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32"
    );
}

#[test]
fn texts_are_quoted_as_go_does() {
    let cases = [
        ("a'b\"c\\", r#""a'b\"c\\""#),
        ("\0\u{1b}\n\t", r#""\x00\x1b\n\t""#),
        ("ä€\u{200b}\u{1f600}", "\"ä€\\u200b\u{1f600}\""),
    ];
    for (text, wanted) in cases {
        assert_eq!(super::go::quoted(text), wanted);
    }
}

/// Go forgets line ends and bits that stand for nothing; so do we, for what is stored is canonical.
#[test]
fn base64_is_written_anew() {
    let data = |text: &str| {
        let body = json!({ "data": { "a": text } }).to_string();
        let decoded = decode(body.as_bytes(), SECRET, FieldValidation::Strict).unwrap();
        decoded.object.to_value()["data"]["a"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(data("aGk="), "aGk=");
    assert_eq!(data("aGl="), "aGk=");
    assert_eq!(data("aR=="), "aQ==");
    assert_eq!(data("aG\nk=\r\n"), "aGk=");
    assert_eq!(data(""), "");
}

/// A number keeps all its digits, however often it is read.
#[test]
fn numbers_are_exact() {
    let text = "3.333333333333334e+31";
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(value.to_string(), text);
}

/// A quantity's own decoder takes any value for its text.
#[test]
fn a_quantity_that_is_a_list() {
    let body = json!({ "spec": { "containers": [{ "resources": { "limits": { "cpu": [1] } } }] } });
    let error = decode(body.to_string().as_bytes(), POD, FieldValidation::Ignore).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("quantities must match the regular expression"),
        "{text}"
    );
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inside, _| json!({ "a": inside }))
}

#[test]
fn what_nests_too_deep_for_readers_is_refused() {
    let check = |value: Value| check_nesting(value.as_object().unwrap());
    assert_eq!(check(nested(NESTING_MAX)), Ok(()));
    assert_eq!(check(nested(NESTING_MAX + 1)), Err(DecodeError::TooDeep));
    let managed = |levels| {
        let fields = json!({ "managedFields": [{ "fieldsV1": nested(levels) }] });
        json!({ "metadata": fields, "data": nested(NESTING_MAX - 1) })
    };
    // Object, metadata, list, entry: four levels around it.
    assert_eq!(check(managed(MANAGED_NESTING_MAX - 4)), Ok(()));
    assert_eq!(
        check(managed(MANAGED_NESTING_MAX - 3)),
        Err(DecodeError::TooDeep)
    );
}
