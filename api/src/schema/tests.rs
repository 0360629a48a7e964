//! The schema built at build time is whole and says how lists merge.

use super::*;

fn field_of(type_name: &str, name: &str) -> Field {
    let schema = schema();
    *schema.field(schema.find(type_name).unwrap(), name).unwrap()
}

#[test]
fn every_kind_has_a_type() {
    for kind in kinds() {
        assert!(schema().find(kind.schema).is_some(), "{}", kind.schema);
    }
    assert!(
        kinds()
            .iter()
            .any(|kind| kind.kind == "DeploymentList" && kind.group == "apps")
    );
}

#[test]
fn merge_facts_are_in() {
    let ports = field_of("io.k8s.api.core.v1.Container", "ports");
    assert_eq!(ports.list_type, ListType::Map);
    assert_eq!(
        schema().map_keys(&ports).collect::<Vec<_>>(),
        ["containerPort", "protocol"]
    );
    assert!(ports.strategy.merge && !ports.strategy.retain_keys);
    assert_eq!(schema().text(ports.merge_key), "containerPort");
    let strategy = field_of("io.k8s.api.apps.v1.DeploymentSpec", "strategy");
    assert!(strategy.strategy.retain_keys && !strategy.strategy.merge);
    let name = field_of("io.k8s.api.core.v1.LocalObjectReference", "name");
    assert!(!name.required);
}

#[test]
fn shapes_are_read() {
    let schema = schema();
    let Shape::Map(value) = field_of("io.k8s.api.core.v1.Secret", "data").shape else {
        panic!()
    };
    assert_eq!(schema.shape(value), Shape::Bytes);
    let time = schema
        .find("io.k8s.apimachinery.pkg.apis.meta.v1.Time")
        .unwrap();
    assert_eq!(schema.get(time).kind, TypeKind::Time);
    let meta = field_of("io.k8s.api.core.v1.Pod", "metadata");
    let Shape::Type(meta) = meta.shape else {
        panic!()
    };
    assert_eq!(
        schema.type_name(meta),
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
}

#[test]
fn descriptions_match_line_for_line() {
    let fields: usize = schema().types().map(|id| schema().fields(id).len()).sum();
    assert_eq!(
        descriptions().lines().count(),
        fields + schema().types().count()
    );
}
