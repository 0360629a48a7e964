//! What is read from the machine's files.

use super::{Facts, pretty_name};
use crate::usage::node::field;
use std::path::Path;

#[test]
fn this_machine_has_facts() {
    let facts = Facts::of_machine(Path::new("/"));
    assert!(facts.cpus > 0 && facts.memory_bytes > 1 << 20 && facts.disk_bytes > 1 << 20);
    assert!(!facts.boot_id.is_empty() && !facts.kernel_version.is_empty());
}

#[test]
fn texts_are_picked_apart() {
    let text = "MemTotal:       16 kB\nMemAvailable:    8 kB\n";
    assert_eq!(field(text, "MemAvailable"), Some(8192));
    assert_eq!(
        pretty_name("ID=x\nPRETTY_NAME=\"Edge OS 1\"\n"),
        "Edge OS 1"
    );
}
