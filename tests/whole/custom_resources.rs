//! Kinds that users bring, with kubectl: from the definition to the end of the last object, over a
//! restart of the server.

use crate::lab::{Cluster, Lab, wait};

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.shop.example.test }
spec:
  group: shop.example.test
  scope: Namespaced
  names: { plural: widgets, kind: Widget, shortNames: [wd], categories: [shop] }
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: { specReplicasPath: .spec.size, statusReplicasPath: .status.ready }
    additionalPrinterColumns:
    - { name: Size, type: integer, jsonPath: .spec.size }
    - { name: Color, type: string, jsonPath: .spec.color, priority: 1 }
    schema:
      openAPIV3Schema:
        type: object
        description: A widget of the shop.
        properties:
          spec:
            type: object
            description: What is wanted of a widget.
            required: [size]
            properties:
              size: { type: integer, minimum: 1, description: How large it is. }
              color: { type: string, default: red }
          status:
            type: object
            properties: { ready: { type: integer } }
"#;

fn widget(size: &str) -> String {
    format!(
        "apiVersion: shop.example.test/v1\nkind: Widget\nmetadata: {{ name: first }}\n\
         spec: {{ size: {size} }}\n"
    )
}

fn try_apply(cluster: &Cluster, manifest: &str) -> Result<String, String> {
    let path = cluster.host.data_dir.join("widget.yaml");
    std::fs::write(&path, manifest).unwrap();
    cluster.try_kubectl(&["apply", "-f", &path.display().to_string()])
}

fn establish(cluster: &Cluster) {
    cluster.apply(DEFINITION);
    let definition = "crd/widgets.shop.example.test";
    let established = "--for=condition=Established";
    cluster.kubectl(&["wait", established, definition, "--timeout=100s"]);
}

#[test]
fn a_kind_lives_with_kubectl_and_over_a_restart() {
    let mut lab = Lab::new();
    let mut cluster = lab.server("widgets", &[]);
    establish(&cluster);
    let known = cluster.kubectl(&["api-resources", "--api-group=shop.example.test"]);
    assert!(known.contains("widgets") && known.contains("wd"), "{known}");
    cluster.apply(&widget("3"));
    let refused = try_apply(&cluster, &widget("0")).unwrap_err();
    assert!(
        refused.contains("should be greater than or equal to 1"),
        "{refused}"
    );
    let unknown = try_apply(&cluster, &widget("3, oops: 1"));
    let unknown = unknown.expect_err("kubectl has unknown fields refused");
    assert!(unknown.contains("unknown field \"spec.oops\""), "{unknown}");
    let table = cluster.kubectl(&["get", "wd", "-o", "wide"]);
    assert!(table.contains("SIZE") && table.contains("COLOR"), "{table}");
    assert!(table.contains("red"), "{table}");
    let explained = cluster.kubectl(&["explain", "widgets.spec"]);
    assert!(
        explained.contains("What is wanted of a widget."),
        "{explained}"
    );
    assert!(explained.contains("How large it is."), "{explained}");
    cluster.kubectl(&["scale", "widget", "first", "--replicas=5"]);
    let patch = r#"{"spec":{"color":"blue"}}"#;
    cluster.kubectl(&["patch", "widget", "first", "--type=merge", "-p", patch]);
    let spec = cluster.value(&["widget", "first"], "{.spec}");
    assert_eq!(spec, r#"{"color":"blue","size":5}"#);

    assert!(lab.process(cluster.process).terminate().success());
    let data_dir = cluster.host.data_dir.display().to_string();
    let arguments = ["server", "--data-dir", &data_dir];
    cluster.process = lab.spawn(&cluster.host, &arguments);
    wait("the server is there again", || {
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
    assert_eq!(cluster.value(&["widget", "first"], "{.spec.size}"), "5");
    cluster.kubectl(&["delete", "crd", "widgets.shop.example.test"]);
    wait("the kind is gone", || {
        cluster.try_kubectl(&["get", "widgets"]).err()
    });
    establish(&cluster);
    assert_eq!(cluster.kubectl(&["get", "widgets", "-o", "name"]), "");
}
