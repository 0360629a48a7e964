//! Server-side apply as people use it: conflicts, force, what is given up, the move from
//! client-side apply and what that leaves behind. With every kubectl there is.

use crate::lab::{Cluster, Lab, kubectls};

fn file(cluster: &Cluster, name: &str, manifest: &str) -> String {
    let path = cluster.host.data_dir.join(name);
    std::fs::write(&path, manifest).unwrap();
    path.display().to_string()
}

fn map(data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, labels: {{app: web}}}}\n\
         data: {{{data}}}\n"
    )
}

/// `manager operation`, sorted, of the map.
fn managers(cluster: &Cluster) -> Vec<String> {
    let path = "{range .metadata.managedFields[*]}{.manager} {.operation}{\"\\n\"}{end}";
    let shown = cluster.kubectl(&[
        "get",
        "configmap",
        "settings",
        "--show-managed-fields",
        "-o",
        &format!("jsonpath={path}"),
    ]);
    let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn data(cluster: &Cluster) -> String {
    cluster.value(&["configmap", "settings"], "{.data}")
}

#[test]
fn fields_are_shared_taken_and_given_up() {
    let mut lab = Lab::new();
    let cluster = lab.server("apply", &[]);
    for kubectl in kubectls() {
        let cluster = Cluster {
            kubectl,
            ..cluster.clone()
        };
        let both = file(&cluster, "both.yaml", &map("a: \"1\", b: \"1\""));
        let one = file(&cluster, "one.yaml", &map("a: \"1\""));
        let other = file(&cluster, "other.yaml", &map("a: \"2\""));
        let apply = |more: &[&str]| {
            let arguments = [&["apply", "--server-side"], more].concat();
            cluster.try_kubectl(&arguments)
        };
        let made = apply(&["-f", &both]).unwrap();
        assert!(
            made.contains("configmap/settings serverside-applied"),
            "{made}"
        );
        let refused = apply(&["-f", &other, "--field-manager", "other"]).unwrap_err();
        assert!(
            refused.contains("Apply failed with 1 conflict: conflict with \"kubectl\": .data.a"),
            "{refused}"
        );
        let diff = ["diff", "--server-side", "--force-conflicts", "-f", &other];
        let diff = [&diff[..], &["--field-manager", "other"]].concat();
        let shown = cluster.try_kubectl(&diff).unwrap_err();
        assert!(shown.contains("-  a: \"1\"\n+  a: \"2\"\n"), "{shown}");
        apply(&[
            "-f",
            &other,
            "--field-manager",
            "other",
            "--force-conflicts",
        ])
        .unwrap();
        assert_eq!(data(&cluster), r#"{"a":"2","b":"1"}"#);
        assert_eq!(managers(&cluster), ["kubectl Apply", "other Apply"]);
        // What is no longer wanted by its only manager goes.
        apply(&["-f", &one, "--force-conflicts"]).unwrap();
        assert_eq!(data(&cluster), r#"{"a":"1"}"#);
        cluster.kubectl(&["delete", "configmap", "settings"]);
    }
}

#[test]
fn an_object_of_client_side_apply_moves_over() {
    let mut lab = Lab::new();
    let cluster = lab.server("moves", &[]);
    for kubectl in kubectls() {
        let cluster = Cluster {
            kubectl,
            ..cluster.clone()
        };
        let both = file(&cluster, "both.yaml", &map("a: \"1\", b: \"1\""));
        let one = file(&cluster, "one.yaml", &map("a: \"2\""));
        cluster.kubectl(&["apply", "-f", &both]);
        assert_eq!(managers(&cluster), ["kubectl-client-side-apply Update"]);
        // Other managers are told apart; kubectl itself takes over, removals and all.
        let foreign = ["apply", "--server-side", "--field-manager", "x", "-f", &one];
        let refused = cluster.try_kubectl(&foreign).unwrap_err();
        assert!(
            refused.contains("conflict with \"kubectl-client-side-apply\" using v1"),
            "{refused}"
        );
        cluster.kubectl(&["apply", "--server-side", "-f", &one]);
        assert_eq!(data(&cluster), r#"{"a":"2"}"#);
        // kubectl notes the annotation under a name of its own.
        assert_eq!(
            managers(&cluster),
            ["kubectl Apply", "kubectl-last-applied Apply"]
        );
        let last = cluster.kubectl(&["apply", "view-last-applied", "configmap/settings"]);
        assert!(last.contains("a: \"2\"") && !last.contains("b:"), "{last}");
        // And back: the annotation was kept up to date.
        cluster.kubectl(&["apply", "-f", &both]);
        assert_eq!(data(&cluster), r#"{"a":"1","b":"1"}"#);
        cluster.kubectl(&["delete", "configmap", "settings"]);
    }
}
