//! What is told of chains that others have made, by `nft` in network namespaces of the test's own.

use super::{changed, messages};
use crate::families::Families;
use crate::network::nft::{Hook, Nft};
use crate::network::subnet::Subnet;
use crate::network::table::Table;
use crate::network::testing::isolated_async;
use expect_test::expect;
use std::process::Command;
use tokio_util::sync::CancellationToken;

fn nft(command: &str) {
    let output = Command::new("nft").arg(command).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

fn networks(all: &[&str]) -> Families<Subnet> {
    all.iter().map(|one| Subnet::parse(one).unwrap()).collect()
}

async fn told(own: &[&str]) -> String {
    let kernel = Nft::open().unwrap();
    let found = kernel.others_that_drop(Hook::Forward).await.unwrap();
    let messages: Vec<_> = messages(&found, networks(own)).into_iter().collect();
    messages.join("\n")
}

const BOTH: [&str; 2] = ["10.42.0.0/24", "fd42::/64"];

#[test]
fn what_drops_is_told_with_what_to_do() {
    isolated_async(|| async {
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(keeper.run(stop.clone()));
        table.epochs().wait_for(|epoch| *epoch > 0).await.unwrap();
        // Ours, what lets pass, what is no filter of what is forwarded.
        nft("add table ip filter");
        nft("add chain ip filter INPUT { type filter hook input priority 0; policy drop; }");
        nft("add chain ip filter FORWARD { type filter hook forward priority 0; policy accept; }");
        assert_eq!(told(&BOTH).await, "");
        let mut generation = 0;
        assert!(changed(&table.nft, &mut generation).await.unwrap());
        assert!(!changed(&table.nft, &mut generation).await.unwrap());
        nft("add chain ip filter FORWARD { policy drop; }");
        assert!(changed(&table.nft, &mut generation).await.unwrap());
        nft("add table inet site");
        nft("add chain inet site forward { type filter hook forward priority 0; policy drop; }");
        expect![[r#"
            Packets of pods are dropped unless a rule of this machine's firewall lets them pass: the policy of the chain FORWARD in the table ip filter is drop. If none does: iptables -I FORWARD -s 10.42.0.0/24 -j ACCEPT ; iptables -I FORWARD -d 10.42.0.0/24 -j ACCEPT
            Packets of pods are dropped unless a rule of this machine's firewall lets them pass: the policy of the chain forward in the table inet site is drop. If none does: nft insert rule inet site forward ip saddr 10.42.0.0/24 accept ; nft insert rule inet site forward ip daddr 10.42.0.0/24 accept
            Packets of pods are dropped unless a rule of this machine's firewall lets them pass: the policy of the chain forward in the table inet site is drop. If none does: nft insert rule inet site forward ip6 saddr fd42::/64 accept ; nft insert rule inet site forward ip6 daddr fd42::/64 accept"#]].assert_eq(&told(&BOTH).await);
        assert_eq!(told(&BOTH[1..]).await.lines().count(), 1);
        assert_eq!(told(&[]).await, "");
        nft("delete table inet site");
        nft("add chain ip filter FORWARD { policy accept; }");
        assert_eq!(told(&BOTH).await, "");
        stop.cancel();
    });
}
