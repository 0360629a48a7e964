//! Clients written for Kubernetes by others, in their own languages.

use crate::lab::{Lab, all_text};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/whole/foreign_clients/client.py"
);

#[test]
#[allow(clippy::disallowed_methods)] // Tests are configured by the command that runs them.
fn the_python_client_pages_watches_and_deletes() {
    let mut lab = Lab::new();
    let cluster = lab.server("python", &[]);
    let mut python = cluster.host.command("python3");
    // Where tests/run installs the client; without it the machine's own is used.
    if let Some(packages) = std::env::var_os("CORACLE_TEST_PYTHON_CLIENT") {
        python.env("PYTHONPATH", packages);
    }
    let output = python.arg(SCRIPT).arg(cluster.kubeconfig()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
}
