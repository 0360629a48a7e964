//! The rules and sets in the kernel, in network namespaces of the tests' own.

use super::{Families, Subnet, plan, set_name, wanted};
use crate::network::nft::{Family, Nft};
use crate::network::peers::PodNetworks;
use crate::network::table::{PODS_MASQUERADE, Table};
use crate::network::testing::isolated_async;
use tokio_util::sync::CancellationToken;

fn subnet(text: &str) -> Subnet {
    Subnet::parse(text).unwrap()
}

async fn count(nft: &Nft, family: Family) -> usize {
    let sets = nft.sets().await.unwrap();
    let set = sets
        .iter()
        .find(|set| set.name == set_name(family))
        .unwrap();
    nft.elements(set).await.unwrap().len()
}

#[test]
fn networks_of_all_nodes_stand_in_sets_and_change() {
    isolated_async(|| async {
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(keeper.run(stop.clone()));
        table.epochs().wait_for(|epoch| *epoch > 0).await.unwrap();
        let nft = &table.nft;
        let own = subnet("10.42.0.0/24").into();
        let networks =
            |all: &[&str]| -> PodNetworks { all.iter().map(|one| subnet(one)).collect() };
        // Neighbours are one range.
        let all = networks(&["10.42.1.0/24", "10.42.3.0/24", "fd42::/64"]);
        nft.commit(&plan(own, &all)).await.unwrap();
        assert_eq!(count(nft, Family::Ip4).await, 2);
        assert_eq!(count(nft, Family::Ip6).await, 1);
        let rules = nft.rules(Some(PODS_MASQUERADE)).await.unwrap().len();
        nft.commit(&plan(own, &networks(&["10.42.3.0/24"])))
            .await
            .unwrap();
        assert_eq!(count(nft, Family::Ip4).await, 2);
        assert_eq!(count(nft, Family::Ip6).await, 0);
        assert_eq!(nft.rules(Some(PODS_MASQUERADE)).await.unwrap().len(), rules);
        let both = [subnet("10.42.0.0/24"), subnet("fd42:0:0:1::/64")];
        let all = networks(&["fd42::/64"]);
        let batch = plan(both.into_iter().collect(), &all);
        nft.commit(&batch).await.unwrap();
        assert_eq!(count(nft, Family::Ip4).await, 1);
        assert_eq!(count(nft, Family::Ip6).await, 1);
        let found = nft.rules(Some(PODS_MASQUERADE)).await.unwrap().len();
        assert_eq!(found, rules + 1);
        stop.cancel();
    });
}

#[test]
fn nothing_is_written_before_it_is_known_where_pods_are() {
    let own = subnet("10.42.0.0/24").into();
    let all = PodNetworks::new();
    assert!(wanted(own, Some(&all)).is_some());
    // What a former agent left says more.
    assert!(wanted(own, None).is_none());
    assert!(wanted(Families::default(), Some(&all)).is_none());
}
