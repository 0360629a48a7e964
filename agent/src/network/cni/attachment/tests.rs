//! What is on disk.

use super::{Attachment, Attachments, Found};
use crate::network::cni::configuration::find;
use crate::network::cni::testing::Node;
use crate::runtime::SandboxId;
use serde_json::Map;

fn id(name: &str) -> SandboxId {
    SandboxId(name.into())
}

#[test]
fn what_was_told_is_kept() {
    let node = Node::new();
    node.configure(
        "10-a.conflist",
        r#"{"cniVersion": "1.1.0", "name": "n", "disableCheck": true,
            "plugins": [{"type": "a", "own": [1.5, null]}]}"#,
    );
    let attachments = Attachments::new(node.path("network.cni"));
    assert!(attachments.sandboxes().unwrap().is_empty());
    let one = Attachment {
        sandbox: id("one"),
        network: find(&node.path("net.d")).unwrap().unwrap(),
        namespace: "/run/netns/x".into(),
        arguments: "A=b".into(),
        capabilities: Map::from_iter([("mac".to_owned(), "x".into())]),
        directories: vec!["/opt/cni/bin".into()],
        outcome: None,
    };
    attachments.keep(&one).unwrap();
    let again = Attachments::new(node.path("network.cni"));
    let known = Found::Known(Box::new(one.clone()));
    assert_eq!(again.find(&id("one")).unwrap(), known);
    assert_eq!(again.find(&id("two")).unwrap(), Found::Nothing);
    assert_eq!(one.addresses(), None);
    let outcome = serde_json::json!({"ips": [{"address": "10.1.0.2/16"}]});
    let done = Attachment {
        outcome: outcome.as_object().cloned(),
        ..one
    };
    again.keep(&done).unwrap();
    let Found::Known(found) = attachments.find(&id("one")).unwrap() else {
        panic!("it is there");
    };
    assert_eq!(found.addresses(), Some(vec!["10.1.0.2".parse().unwrap()]));
    assert_eq!(again.sandboxes().unwrap(), [id("one")].into());
    again.forget(&id("one")).unwrap();
    again.forget(&id("one")).unwrap();
    assert!(again.sandboxes().unwrap().is_empty());
}

#[test]
fn what_a_bad_disk_left_is_set_aside() {
    let node = Node::new();
    let directory = node.path("network.cni");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("one"), "{\"sandbox\":").unwrap();
    let attachments = Attachments::new(directory.clone());
    // Also when it is looked for again.
    for _ in 0..2 {
        let found = attachments.find(&id("one")).unwrap();
        assert_eq!(found, Found::Unreadable);
    }
    assert!(directory.join(".unreadable-one").exists());
    assert_eq!(attachments.sandboxes().unwrap(), [id("one")].into());
    // As an agent leaves it that was killed.
    std::fs::write(directory.join(".one.a1b2c3"), "").unwrap();
    std::fs::write(directory.join(".unreadable-once"), "").unwrap();
    attachments.forget(&id("one")).unwrap();
    assert_eq!(attachments.find(&id("one")).unwrap(), Found::Nothing);
    assert_eq!(attachments.sandboxes().unwrap(), [id("once")].into());
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    // What cannot be read is not the same as nothing.
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(attachments.sandboxes().unwrap().is_empty());
    std::fs::write(&directory, "").unwrap();
    assert!(attachments.sandboxes().is_err());
}
