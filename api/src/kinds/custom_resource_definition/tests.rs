//! Defaults, versions, schemas and updates of definitions.

use crate::kinds::testing::update_errors;
use crate::kinds::testing::{check_errors, check_row, check_spec, defaulted, object, resource};
use crate::resource::Part;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const PLURAL: &str = "customresourcedefinitions";

fn definition(more: Value) -> Value {
    let mut spec = json!({
        "group": "acme.io", "scope": "Namespaced", "names": { "plural": "foos", "kind": "Foo" },
        "versions": [version("v1", true, json!({ "type": "object" }))],
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({
        "kind": "CustomResourceDefinition", "metadata": { "name": "foos.acme.io" }, "spec": spec,
    })
}

fn version(name: &str, storage: bool, schema: Value) -> Value {
    let schema = json!({ "openAPIV3Schema": schema });
    json!({ "name": name, "served": true, "storage": storage, "schema": schema })
}

fn check_schema(schema: Value, expected: Expect) {
    let one = definition(json!({ "versions": [version("v1", true, schema)] }));
    check_errors(PLURAL, one, expected);
}

#[test]
fn defaulted_and_good() {
    check_spec(
        PLURAL,
        definition(json!({})),
        expect![[r#"
        conversion: {"strategy":"None"}
        group: "acme.io"
        names: {"kind":"Foo","listKind":"FooList","plural":"foos","singular":"foo"}
        scope: "Namespaced"
        versions: [{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true}]"#]],
    );
    check_errors(PLURAL, definition(json!({})), expect![[""]]);
    let mut created = defaulted(PLURAL, definition(json!({})));
    resource(PLURAL).rules.prepare_create(&mut created);
    expect![[
        r#"{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}"#
    ]]
    .assert_eq(&created.get(&["status"]).unwrap().to_string());
    check_row(
        PLURAL,
        definition(json!({})),
        0,
        expect![[r#"
        Name: foos.acme.io
        Created At: "#]],
    );
}

#[test]
fn required() {
    check_errors(
        PLURAL,
        json!({ "metadata": { "name": "x" } }),
        expect![[r#"
            metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group
            spec.group: Required value
            spec.scope: Required value
            spec.versions: Invalid value: null: must have exactly one version marked as storage version
            spec.names.plural: Required value
            spec.names.singular: Required value
            spec.names.kind: Required value
            spec.names.listKind: Required value
            status.storedVersions: Invalid value: null: must have at least one stored version"#]],
    );
}

#[test]
fn names() {
    check_errors(
        PLURAL,
        definition(json!({
            "group": "acme", "scope": "Everywhere",
            "names": {
                "plural": "Foos", "singular": "1", "kind": "F o", "listKind": "F o",
                "shortNames": ["F"], "categories": ["All"],
            },
        })),
        expect![[r#"
            metadata.name: Invalid value: "foos.acme.io": must be spec.names.plural+"."+spec.group
            spec.group: Invalid value: "acme": should be a domain with at least one dot
            spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"
            spec.names.plural: Invalid value: "Foos": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.singular: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.kind: Invalid value: "F o": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.listKind: Invalid value: "F o": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.shortNames[0]: Invalid value: "F": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.categories[0]: Invalid value: "All": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.names.listKind: Invalid value: "F o": kind and listKind may not be the same"#]],
    );
}

#[test]
fn versions_differ() {
    let one = version("v1", true, json!({ "type": "object" }));
    let mut other = version(
        "V2",
        true,
        json!({ "type": "object", "properties": { "a": {} } }),
    );
    other["deprecationWarning"] = "old".into();
    other["additionalPrinterColumns"] = json!([{ "name": "a", "type": "b", "jsonPath": "c" }]);
    check_errors(
        PLURAL,
        definition(json!({ "versions": [one, other] })),
        expect![[r#"
            spec.versions[1].name: Invalid value: "V2": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            spec.versions[1].deprecationWarning: Invalid value: "old": can only be set for deprecated versions
            spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields
            spec.versions[1].additionalPrinterColumns[0].type: Invalid value: "b": must be one of boolean,date,integer,number,string
            spec.versions[1].additionalPrinterColumns[0].JSONPath: Invalid value: "c": must be a simple json path starting with .
            spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":{"OpenAPIV3Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}},"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"V2","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":"old","Schema":{"OpenAPIV3Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":{"a":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}},"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}},"Subresources":null,"AdditionalPrinterColumns":[{"Name":"a","Type":"b","Format":"","Description":"","Priority":0,"JSONPath":"c"}],"SelectableFields":null}]: must have exactly one version marked as storage version
            status.storedVersions: Invalid value: ["v1"]: must have the storage version V2"#]],
    );
}

#[test]
fn subresources_columns_and_fields() {
    let mut one = version(
        "v1",
        true,
        json!({
            "type": "object",
            "properties": {
                "spec": { "type": "object", "properties": {
                    "size": { "type": "integer" }, "many": { "type": "array", "items": {
                        "type": "string" } },
                } },
            },
        }),
    );
    one["subresources"] = json!({
        "status": {},
        "scale": {
            "specReplicasPath": "x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".x",
        },
    });
    one["additionalPrinterColumns"] = json!([{ "type": "integer", "format": "f" }, {}]);
    one["selectableFields"] = json!([
        { "jsonPath": ".spec.size" }, { "jsonPath": ".spec.size" }, { "jsonPath": ".spec.many" },
        { "jsonPath": ".spec.none" }, { "jsonPath": "spec" }, { "jsonPath": ".spec[0]" }, {},
    ]);
    check_errors(
        PLURAL,
        definition(json!({ "versions": [one] })),
        expect![[r#"
            spec.subresources.scale.specReplicasPath: Invalid value: "x": must be a simple json path starting with .
            spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.x": should be a json path under .status
            spec.subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status
            spec.additionalPrinterColumns[0].name: Required value
            spec.additionalPrinterColumns[0].format: Invalid value: "f": must be one of byte,date,date-time,double,float,int32,int64,password
            spec.additionalPrinterColumns[0].JSONPath: Required value
            spec.additionalPrinterColumns[1].name: Required value
            spec.additionalPrinterColumns[1].type: Required value: must be one of boolean,date,integer,number,string
            spec.additionalPrinterColumns[1].JSONPath: Required value
            spec.selectableFields[1].jsonPath: Duplicate value: ".spec.size"
            spec.selectableFields[2].jsonPath: Invalid value: ".spec.many": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.
            spec.selectableFields[3].jsonPath: Invalid value: ".spec.none": is an invalid path: does not refer to a valid field
            spec.selectableFields[4].jsonPath: Invalid value: "spec": is an invalid path: expected [ or . but got: spec
            spec.selectableFields[5].jsonPath: Invalid value: ".spec[0]": is an invalid path: array notation is not allowed
            spec.selectableFields[6].jsonPath: Required value"#]],
    );
    let mut one = version("v1", true, json!({ "type": "object", "maxProperties": 1 }));
    one["subresources"] = json!({ "status": {} });
    check_errors(
        PLURAL,
        definition(json!({ "versions": [one] })),
        expect![[
            r#"spec.validation.openAPIV3Schema: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"Format":"","Title":"","Default":null,"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":1,"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"#
        ]],
    );
}

#[test]
fn conversions() {
    let with = |conversion: Value| definition(json!({ "conversion": conversion }));
    check_errors(
        PLURAL,
        with(json!({ "strategy": "Webhook" })),
        expect![[r#"
            spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook
            spec.conversion.conversionReviewVersions: Required value"#]],
    );
    let webhook = json!({ "conversionReviewVersions": ["v2"], "clientConfig": {} });
    check_errors(
        PLURAL,
        with(json!({ "strategy": "Webhook", "webhook": webhook })),
        expect![[r#"
            spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required
            spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1"#]],
    );
    check_errors(
        PLURAL,
        with(json!({ "strategy": "None", "webhook": webhook })),
        expect![[r#"
            spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook
            spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook"#]],
    );
}

#[test]
fn structure() {
    check_schema(
        json!({}),
        expect![
            "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"
        ],
    );
    check_schema(
        json!({
            "type": "object",
            "properties": {
                "a": {}, "b": { "type": "array" }, "c": { "type": "foo" },
                "kind": { "type": "integer" },
                "metadata": { "type": "object", "properties": { "x": { "type": "string" } } },
                "either": {
                    "x-kubernetes-int-or-string": true,
                    "anyOf": [{ "type": "integer" }, { "type": "string" }],
                },
                "nested": {
                    "type": "object",
                    "anyOf": [{ "properties": { "u": { "type": "string" } } }],
                    "not": { "description": "d", "default": 1 },
                },
                "embedded": { "type": "object", "x-kubernetes-embedded-resource": true },
            },
            "allOf": [{ "properties": { "absent": { "minimum": 1 } } }],
        }),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields
            spec.validation.openAPIV3Schema.properties[absent]: Required value: because it is defined in spec.validation.openAPIV3Schema.allOf[0].properties[absent]
            spec.validation.openAPIV3Schema.properties[b].items: Required value: must be specified
            spec.validation.openAPIV3Schema.properties[embedded].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields
            spec.validation.openAPIV3Schema.properties[kind].type: Invalid value: "integer": must be string
            spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
            spec.validation.openAPIV3Schema.properties[nested].anyOf[0].properties[u].type: Forbidden: must be empty to be structural
            spec.validation.openAPIV3Schema.properties[nested].not.default: Forbidden: must be undefined to be structural
            spec.validation.openAPIV3Schema.properties[nested].not.description: Forbidden: must be empty to be structural
            spec.validation.openAPIV3Schema.properties[c].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#]],
    );
    check_schema(
        json!({ "type": "object", "properties": { "a": { "$ref": "#/x", "type": "object" } } }),
        expect![
            "spec.validation.openAPIV3Schema.properties[a].$ref: Forbidden: $ref is not supported"
        ],
    );
}

#[test]
fn extensions() {
    check_schema(
        json!({
            "type": "object",
            "properties": {
                "keyed": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k", "z", "k"],
                    "items": {
                        "type": "object", "nullable": true,
                        "properties": { "k": { "type": "string", "nullable": true } },
                    },
                },
                "set": {
                    "type": "array", "x-kubernetes-list-type": "set",
                    "items": { "type": "object" },
                },
                "map": { "type": "string", "x-kubernetes-map-type": "loose" },
                "list": { "type": "array", "items": { "type": "string" },
                    "x-kubernetes-list-type": "bag", "uniqueItems": true },
                "both": {
                    "type": "object", "properties": { "a": { "type": "string" } },
                    "additionalProperties": { "type": "string" },
                },
                "metadata": { "type": "object", "default": {} },
            },
        }),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[both].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive
            spec.validation.openAPIV3Schema.properties[keyed].x-kubernetes-list-map-keys: Invalid value: ["k","z","k"]: entries must all be names of item properties
            spec.validation.openAPIV3Schema.properties[keyed].x-kubernetes-list-map-keys: Invalid value: ["k","z","k"]: must not contain duplicate entries
            spec.validation.openAPIV3Schema.properties[keyed].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map
            spec.validation.openAPIV3Schema.properties[keyed].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
            spec.validation.openAPIV3Schema.properties[keyed].items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable
            spec.validation.openAPIV3Schema.properties[keyed].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
            spec.validation.openAPIV3Schema.properties[keyed].items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable
            spec.validation.openAPIV3Schema.properties[list].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
            spec.validation.openAPIV3Schema.properties[list].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"
            spec.validation.openAPIV3Schema.properties[map].type: Invalid value: "string": must be object if x-kubernetes-map-type is specified
            spec.validation.openAPIV3Schema.properties[map].x-kubernetes-map-type: Unsupported value: "loose": supported values: "atomic", "granular"
            spec.validation.openAPIV3Schema.properties[metadata].default: Forbidden: must not be set in top-level metadata
            spec.validation.openAPIV3Schema.properties[set].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set"#]],
    );
}

#[test]
fn expressions() {
    let rules = |rules: Value| {
        json!({
            "type": "object",
            "properties": { "spec": {
                "type": "object", "x-kubernetes-validations": rules,
                "properties": { "a": { "type": "string" } },
            } },
        })
    };
    check_schema(
        rules(json!([{ "rule": "self.a == oldSelf.a" }])),
        expect![[""]],
    );
    check_schema(
        rules(json!([{ "rule": "selfType{} == self" }])),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"selfType{} == self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:9: undeclared reference to 'selfType' (in container '')
             | selfType{} == self
             | ........^"#]],
    );
    check_schema(
        rules(json!([
            { "rule": "self.b == 1" },
            { "rule": "self.a ==", "message": "x" },
            { "rule": "object.a" },
            { "rule": "1", "messageExpression": "2", "optionalOldSelf": true },
        ])),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.b == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'b'
             | self.b == 1
             | ....^
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1].rule: Invalid value: {"Rule":"self.a ==","Message":"x","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
             | self.a ==
             | .........^
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[2].rule: Invalid value: {"Rule":"object.a","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'object' (in container '')
             | object.a
             | ^
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[3].rule: Invalid value: {"Rule":"1","Message":"","MessageExpression":"2","Reason":null,"FieldPath":"","OptionalOldSelf":true}: cel expression must evaluate to a bool
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[3].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"#]],
    );
    check_schema(
        rules(json!([
            { "rule": " ", "reason": "Odd", "fieldPath": ".none", "messageExpression": " " },
            { "rule": "true", "message": " " },
            { "rule": "true\n&& true" },
        ])),
        expect![[r#"
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Required value: messageExpression must be non-empty if specified
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".none": must be a valid path
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1].message: Invalid value: " ": must be non-empty if specified
            spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[2].message: Required value: message must be specified if rule contains line breaks"#]],
    );
    check_schema(
        json!({ "type": "object", "properties": { "l": { "type": "array", "maxItems": 9, "items": {
            "type": "string", "maxLength": 9, "x-kubernetes-validations": [{ "rule": "self == oldSelf" }],
        } } } }),
        expect![[
            r#"spec.validation.openAPIV3Schema.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[l]"#
        ]],
    );
}

#[test]
fn protected_groups_need_a_word() {
    let mut one = definition(json!({ "group": "acme.k8s.io" }));
    one["metadata"]["name"] = "foos.acme.k8s.io".into();
    check_errors(
        PLURAL,
        one.clone(),
        expect![[
            r#"metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111"#
        ]],
    );
    one["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": "yes" });
    check_errors(
        PLURAL,
        one.clone(),
        expect![[
            r#"metadata.annotations[api-approved.kubernetes.io]: Invalid value: "yes": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111"#
        ]],
    );
    for good in ["unapproved, a try", "https://a.b/pull/1"] {
        one["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": good });
        check_errors(PLURAL, one.clone(), expect![[""]]);
    }
}

#[test]
fn updates() {
    let mut old = definition(json!({}));
    old["status"] = json!({
        "storedVersions": ["v1"],
        "conditions": [{ "type": "Established", "status": "True" }],
    });
    let other = definition(json!({
        "scope": "Cluster", "names": { "plural": "bars", "kind": "Bar" },
        "versions": [version("v2", true, json!({ "type": "object" }))],
    }));
    update_errors(
        PLURAL,
        other,
        old.clone(),
        Part::Main,
        expect![[r#"
        spec.scope: Invalid value: "Cluster": field is immutable
        spec.names.kind: Invalid value: "Bar": field is immutable
        spec.names.plural: Invalid value: "bars": field is immutable
        status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#]],
    );
    let mut new = object(definition(json!({
        "versions": [
            version("v1", false, json!({ "type": "object" })),
            version("v2", true, json!({ "type": "object" })),
        ],
    })));
    let rules = resource(PLURAL).rules;
    rules.prepare_update(&mut new, &object(old), Part::Main);
    assert_eq!(new.list(&["status", "storedVersions"]), ["v1", "v2"]);
}

#[test]
fn unknown_formats_are_warned_of() {
    let schema = json!({ "type": "object", "properties": {
        "a": { "type": "string", "format": "bogus" },
        "b": { "type": "string", "format": "date-time" },
        "c": { "type": "integer", "format": "int8" },
    } });
    let one = object(definition(
        json!({ "versions": [version("v1", true, schema)] }),
    ));
    let warnings = resource(PLURAL).rules.warnings(&one);
    assert_eq!(
        warnings,
        [
            "unrecognized format \"bogus\"",
            "unrecognized format \"int8\""
        ]
    );
}

/// A Scale that is written makes all fields of the path.
#[test]
fn a_path_of_a_scale_is_bounded() {
    let mut one = version("v1", true, json!({ "type": "object" }));
    let deep = format!(".spec{}", ".a".repeat(1000));
    one["subresources"] = json!({
        "scale": { "specReplicasPath": deep, "statusReplicasPath": ".status.replicas" },
    });
    check_errors(
        PLURAL,
        definition(json!({ "versions": [one] })),
        expect![[
            r#"spec.subresources.scale.specReplicasPath: Too many: 1001: must have at most 64 items"#
        ]],
    );
}
