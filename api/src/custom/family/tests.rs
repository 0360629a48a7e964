use super::*;
use serde_json::json;

#[test]
fn a_definition_becomes_types() {
    let schema = json!({
        "type": "object",
        "properties": {
            "metadata": { "type": "object" },
            "spec": {
                "type": "object",
                "required": ["ports"],
                "properties": {
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": { "type": "object", "properties": {
                            "port": { "type": "integer" },
                            "protocol": { "type": "string", "default": "TCP" },
                        } },
                    },
                    "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                },
            },
        },
    });
    let family = Family::of(&[
        ("a.b/v1".to_owned(), &schema),
        ("a.b/v2".to_owned(), &json::NULL),
    ]);
    let types = family.schema();
    let root = family.root("a.b/v1").expect("the version is there");
    assert!(family.root("a.b/v3").is_none());
    let spec = types.field(root, "spec").expect("spec is a field");
    let Shape::Type(spec) = spec.shape else {
        panic!("spec is a struct");
    };
    let ports = types.field(spec, "ports").expect("ports is a field");
    assert!(ports.required);
    assert_eq!(ports.list_type, ListType::Map);
    assert_eq!(
        types.map_keys(ports).collect::<Vec<_>>(),
        ["port", "protocol"]
    );
    let rest = |name: &str| {
        let field = types.field(spec, name).expect("it is a field");
        match field.shape {
            Shape::Type(id) => types.get(id).rest,
            other => panic!("{name} is {other:?}"),
        }
    };
    assert_eq!(rest("free"), Some(Shape::Any));
    assert_eq!(rest("labels"), Some(Shape::String));
    let metadata = types.field(root, "metadata").expect("every object has it");
    let Shape::Type(metadata) = metadata.shape else {
        panic!("metadata is a struct");
    };
    assert_eq!(types.type_name(metadata), METADATA);
    assert!(types.field(metadata, "ownerReferences").is_some());
    let second = family.root("a.b/v2").expect("the version is there");
    assert_eq!(types.get(second).rest, Some(Shape::Any));
}

#[test]
fn the_envelope_knows_metadata() {
    let schema = envelope();
    let id = schema.find(ENVELOPE).expect("it is there");
    assert_eq!(schema.get(id).rest, Some(Shape::Any));
    assert!(schema.find(METADATA).is_some());
}
