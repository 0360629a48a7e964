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

/// None for one that is not there, and only for that.
fn value(cluster: &Cluster, name: &str) -> Result<Option<String>, String> {
    let asked = [
        "get",
        "cm",
        "-n",
        "site",
        name,
        "-o",
        "jsonpath={.data.value}",
    ];
    match cluster.try_kubectl(&asked) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.contains("(NotFound)") => Ok(None),
        Err(error) => Err(error),
    }
}

fn is(value: &str) -> Result<Option<String>, String> {
    Ok(Some(value.to_owned()))
}

#[track_caller]
fn wait_value(cluster: &Cluster, name: &str, expected: Option<&str>) {
    wait(&format!("{name} is {expected:?}"), || {
        let value = value(cluster, name).ok()?;
        (value.as_deref() == expected).then_some(())
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
    start(&mut lab, &mut cluster);
    wait_value(&cluster, "three", Some("3"));
    wait_value(&cluster, "one", None);
    assert_eq!(value(&cluster, "own"), is("changed"));

    a_moved_object_is_the_same_one(&cluster, &directory);
    nothing_goes_without_the_directory_or_by_a_forged_record(&mut lab, &mut cluster, &directory);

    // An empty one says that nothing is wanted.
    fs::rename(&directory.0, directory.0.with_extension("away")).unwrap();
    fs::create_dir(&directory.0).unwrap();
    for name in ["three", "four", "five"] {
        wait_value(&cluster, name, None);
    }
    wait("its records went, too", || {
        let told = cluster.try_kubectl(&RECORDS).ok()?;
        (!told.contains("coracle-manifest-")).then_some(())
    });
}

/// The server of before, which has ended.
fn start(lab: &mut Lab, cluster: &mut Cluster) {
    let data_dir = cluster.host.data_dir.display().to_string();
    cluster.process = lab.spawn(&cluster.host.clone(), &["server", "--data-dir", &data_dir]);
}

/// Waits until the server answers.
#[track_caller]
fn uid(cluster: &Cluster, name: &str) -> String {
    let asked = [
        "get",
        "cm",
        "-n",
        "site",
        name,
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    wait(&format!("{name} is there"), || {
        cluster.try_kubectl(&asked).ok()
    })
}

fn a_moved_object_is_the_same_one(cluster: &Cluster, directory: &Directory) {
    let before = uid(cluster, "three");
    directory.put(
        "e.yaml",
        &[map("three", "moved"), map("five", "5")].concat(),
    );
    directory.remove("c.json");
    wait_value(cluster, "three", Some("moved"));
    // The records are written last.
    wait("the old file is forgotten", || {
        let told = cluster.try_kubectl(&RECORDS).ok()?;
        (!told.contains("file: c.json")).then_some(())
    });
    assert_eq!(uid(cluster, "three"), before);
}

fn nothing_goes_without_the_directory_or_by_a_forged_record(
    lab: &mut Lab,
    cluster: &mut Cluster,
    directory: &Directory,
) {
    let name = "bystander";
    cluster.kubectl(&["create", "configmap", name, "-n", "site"]);
    let uids = |cluster: &Cluster| [name, "three", "five"].map(|one| uid(cluster, one));
    let before = uids(cluster);
    cluster.apply(&format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: coracle-manifest-forged-yaml-aa09d1aae7
  namespace: kube-system
  labels: {{ manifests.coracle/file: forged-yaml }}
data:
  file: forged.yaml
  objects: '[{{"apiVersion":"v1","kind":"ConfigMap","namespace":"site","name":"{name}","uid":"{}","made":true}}]'
"#,
        before[0]
    ));
    // A server that finds no directory at its start knows what was applied from the records alone.
    lab.process(cluster.process).kill();
    let away = directory.0.with_extension("away");
    fs::rename(&directory.0, &away).unwrap();
    start(lab, cluster);
    wait("the server's loops run", || {
        // Fails where it is there already.
        let _ = cluster.try_kubectl(&["create", "namespace", "later"]);
        let asked = ["get", "serviceaccount", "default", "-n", "later"];
        cluster.try_kubectl(&asked).ok()
    });
    assert_eq!(uids(cluster), before);
    fs::write(away.join("d.yaml"), map("four", "4")).unwrap();
    fs::rename(&away, &directory.0).unwrap();
    wait_value(cluster, "four", Some("4"));
    wait("the forged record is gone", || {
        let told = cluster.try_kubectl(&RECORDS).ok()?;
        (!told.contains("forged.yaml")).then_some(())
    });
    assert_eq!(uids(cluster), before);
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
    assert_eq!(value(cluster, "one"), is("changed"));
    wait("there is an event", || {
        let events = cluster
            .try_kubectl(&["get", "events", "-n", "kube-system"])
            .ok()?;
        events.contains("FailedManifest").then_some(())
    });
}
