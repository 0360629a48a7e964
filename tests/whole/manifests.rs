//! The directory of manifests, as an operator uses it.

use crate::lab::{Cluster, Lab, wait};
use std::fs;
use std::path::PathBuf;

fn map(name: &str, value: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: {name}, namespace: site }}\n\
         data: {{ value: \"{value}\" }}\n"
    )
}

const RECORDS: [&str; 8] = [
    "get",
    "cm",
    "-n",
    "kube-system",
    "-l",
    "manifests.coracle/file",
    "-o",
    "yaml",
];
const NAMESPACE: &str = "---\napiVersion: v1\nkind: Namespace\nmetadata: { name: site }\n";

struct Directory(PathBuf);

impl Directory {
    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }
}

fn value(cluster: &Cluster, name: &str) -> Option<String> {
    let asked = [
        "get",
        "cm",
        "-n",
        "site",
        name,
        "-o",
        "jsonpath={.data.value}",
    ];
    cluster.try_kubectl(&asked).ok()
}

#[track_caller]
fn wait_value(cluster: &Cluster, name: &str, expected: Option<&str>) {
    wait(&format!("{name} is {expected:?}"), || {
        (value(cluster, name).as_deref() == expected).then_some(())
    });
}

#[test]
fn what_lies_in_the_directory_is_applied_and_what_no_longer_does_goes() {
    let mut lab = Lab::new();
    let mut cluster = lab.server("manifests", &[]);
    let directory = Directory(cluster.host.data_dir.join("manifests"));
    // There was none: it is noticed when it comes. What needs the namespace sorts before it.
    fs::create_dir(&directory.0).unwrap();
    directory.put("a.yaml", &[map("one", "1"), map("two", "2")].concat());
    directory.put("b.yaml", NAMESPACE);
    wait_value(&cluster, "one", Some("1"));
    wait_value(&cluster, "two", Some("2"));
    let managers = [
        "get",
        "cm",
        "-n",
        "site",
        "one",
        "--show-managed-fields",
        "-o",
        "yaml",
    ];
    assert!(
        cluster
            .kubectl(&managers)
            .contains("manager: coracle-manifests")
    );

    // A change, and an object that the file says no more.
    directory.put("a.yaml", &map("one", "changed"));
    wait_value(&cluster, "one", Some("changed"));
    wait_value(&cluster, "two", None);

    a_bad_file_takes_nothing_away(&cluster, &directory);

    // What somebody else had made is changed, and not deleted with the file.
    cluster.kubectl(&[
        "create",
        "configmap",
        "own",
        "-n",
        "site",
        "--from-literal=value=0",
    ]);
    directory.put("a.yaml", &[map("one", "1"), map("own", "changed")].concat());
    wait_value(&cluster, "own", Some("changed"));

    // It is remembered by the cluster, whatever happened meanwhile.
    lab.process(cluster.process).kill();
    directory.remove("a.yaml");
    directory.put("c.json", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three","namespace":"site"},"data":{"value":"3"}}"#);
    let data_dir = cluster.host.data_dir.display().to_string();
    cluster.process = lab.spawn(&cluster.host.clone(), &["server", "--data-dir", &data_dir]);
    wait_value(&cluster, "three", Some("3"));
    wait_value(&cluster, "one", None);
    assert_eq!(value(&cluster, "own").as_deref(), Some("changed"));

    // Without the directory nothing is taken away; an empty one says that nothing is wanted.
    fs::rename(&directory.0, directory.0.with_extension("away")).unwrap();
    fs::create_dir(&directory.0).unwrap();
    wait_value(&cluster, "three", None);
    wait("its records went, too", || {
        let told = cluster.try_kubectl(&RECORDS).ok()?;
        (!told.contains("coracle-manifest-")).then_some(())
    });
}

fn a_bad_file_takes_nothing_away(cluster: &Cluster, directory: &Directory) {
    directory.put(
        "a.yaml",
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { nam",
    );
    wait("the failure is told", || {
        let told = cluster.try_kubectl(&RECORDS).ok()?;
        told.contains("failure: 'document 1:").then_some(())
    });
    assert_eq!(value(cluster, "one").as_deref(), Some("changed"));
    wait("there is an event", || {
        let events = cluster
            .try_kubectl(&["get", "events", "-n", "kube-system"])
            .ok()?;
        events.contains("FailedManifest").then_some(())
    });
}
