//! A node does not change its runtime by itself.

use super::{Endpoints, check, kept, mark};
use crate::grpc::Endpoint;

fn chosen() -> Endpoints {
    let endpoint = Endpoint::parse("unix:///run/boatd.sock").unwrap();
    Endpoints {
        runtime: endpoint.clone(),
        images: endpoint,
    }
}

#[test]
fn a_choice_holds_until_the_node_is_wiped() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    check(at, None).unwrap();
    check(at, Some(&chosen())).unwrap();
    let text = "unix:///run/boatd.sock\nunix:///run/boatd.sock\n";
    std::fs::write(mark(at), text).unwrap();
    assert_eq!(kept(at).unwrap(), Some(chosen()));
    check(at, Some(&chosen())).unwrap();
    let error = check(at, None).unwrap_err().to_string();
    assert!(
        error.contains("--container-runtime-endpoint unix:///run/boatd.sock"),
        "{error}"
    );
    std::fs::write(mark(at), "rubbish").unwrap();
    assert!(check(at, None).is_err());
}

#[test]
fn pods_of_the_runtime_that_is_built_in_are_not_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::create_dir_all(at.join("sandboxes/some")).unwrap();
    check(at, None).unwrap();
    let error = check(at, Some(&chosen())).unwrap_err().to_string();
    assert!(error.contains("the runtime that is built in"), "{error}");
}
