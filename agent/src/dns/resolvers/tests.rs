//! Who is asked, by the node's file.

use super::*;

#[test]
fn the_first_three_that_are_not_this_node_are_asked() {
    let own = ["10.43.0.10".parse().unwrap()];
    let text = "# x\nnameserver 10.43.0.10\nsearch lan\nnameserver 127.0.0.53\nnameserver\n\
                nameserver nonsense\nnameserver fd00::1\nnameserver 127.0.0.53\n\
                nameserver 9.9.9.9\nnameserver 8.8.8.8\n";
    let found = parse(text, &own);
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["127.0.0.53:53", "[fd00::1]:53", "9.9.9.9:53"]);
    assert_eq!(parse("", &own), []);
}

#[test]
fn an_address_of_one_link_names_it() {
    let found = parse("nameserver fe80::1%lo\n", &[]);
    assert_eq!(found[0].to_string(), "[fe80::1%1]:53");
    assert_eq!(parse("nameserver fe80::1%no-such-link\n", &[]), []);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_changes_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("resolv.conf");
    let resolvers = Resolvers::new(path.clone(), Vec::new());
    assert!(resolvers.get(Instant::now()).is_empty());
    std::fs::write(&path, "nameserver 192.168.1.1\n").unwrap();
    assert!(
        resolvers.get(Instant::now()).is_empty(),
        "looked at a moment ago"
    );
    tokio::time::advance(LOOK_PAUSE).await;
    assert_eq!(resolvers.get(Instant::now()).len(), 1);
    // Replaced, as programs do.
    let new = directory.path().join("new");
    std::fs::write(&new, "nameserver 192.168.1.1\nnameserver 192.168.1.2\n").unwrap();
    std::fs::rename(&new, &path).unwrap();
    tokio::time::advance(LOOK_PAUSE).await;
    assert_eq!(resolvers.get(Instant::now()).len(), 2);
    std::fs::remove_file(&path).unwrap();
    tokio::time::advance(LOOK_PAUSE).await;
    assert!(resolvers.get(Instant::now()).is_empty());
}
