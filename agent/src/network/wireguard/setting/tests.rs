//! From annotations to what is done, and across restarts.

use super::{Following, Setting, Told};
use crate::network::subnet::Subnet;
use crate::network::view::View;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

fn told(annotations: &[(&str, &str)]) -> Told {
    let annotations = annotations.iter();
    let annotations: BTreeMap<_, _> = annotations
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Told::of(Some(&annotations))
}

fn encrypted(port: u16, cluster: &[&str]) -> Told {
    let cluster = cluster.iter().map(|text| Subnet::parse(text).unwrap());
    Told::Encrypted(Setting {
        port,
        cluster: cluster.collect(),
    })
}

#[test]
fn the_namespace_says_whether_and_how() {
    assert_eq!(Told::of(None), Told::Plain);
    assert_eq!(told(&[("app", "x")]), Told::Plain);
    assert_eq!(told(&[("network.coracle/encryption", "none")]), Told::Plain);
    let whole = [
        ("network.coracle/encryption", "wireguard"),
        ("network.coracle/wireguard-port", "4000"),
        ("network.coracle/cluster-cidr", "10.42.0.0/16, fd42::/48"),
    ];
    let networks = ["10.42.0.0/16", "fd42::/48"];
    assert_eq!(told(&whole), encrypted(4000, &networks));
    // What cannot be read is no way back to plain text.
    for (key, value) in [
        ("network.coracle/encryption", "rot13"),
        ("network.coracle/encryption", ""),
    ] {
        assert_eq!(told(&[(key, value)]), encrypted(51820, &[]));
    }
    for port in ["0", "65536", "x"] {
        let damaged = [
            ("network.coracle/encryption", "wireguard"),
            ("network.coracle/wireguard-port", port),
            ("network.coracle/cluster-cidr", "nowhere"),
        ];
        assert_eq!(told(&damaged), encrypted(51820, &[]));
    }
}

#[tokio::test]
async fn what_was_told_outlives_the_agent() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("network.encryption");
    let view = View::new();
    let following = Following::open(view.clone(), file.clone());
    let mut known = following.subscribe();
    assert_eq!(*known.borrow_and_update(), Told::Nothing);
    let stop = CancellationToken::new();
    let running = tokio::spawn(following.run(stop.clone()));
    for told in [encrypted(51820, &["10.42.0.0/16"]), Told::Plain] {
        view.set_encryption(told.clone());
        known.wait_for(|now| *now == told).await.unwrap();
        // It is on disk before anybody acts by it, for a start without the server.
        let next = Following::open(View::new(), file.clone());
        assert_eq!(*next.subscribe().borrow(), told);
    }
    stop.cancel();
    running.await.unwrap();
    std::fs::write(&file, "{").unwrap();
    let next = Following::open(View::new(), file);
    assert_eq!(*next.subscribe().borrow(), Told::Nothing);
}
