//! The rules in the kernel, in network namespaces of the tests' own.

use super::{Guard, Range, WAYS_IN, WAYS_LEAVING, WAYS_OUT, close, open, set_name};
use crate::network::nft::{Family, Nft};
use crate::network::subnet::Subnet;
use crate::network::table::{ENCRYPTION_IN, ENCRYPTION_LEAVING, ENCRYPTION_OUT, Table};
use crate::network::testing::isolated_async;
use crate::network::wireguard::{Setting, Told};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

fn ranges(texts: &[&str]) -> Vec<Range> {
    let subnets = texts.iter().map(|text| Subnet::parse(text).unwrap());
    subnets.map(Range::from).collect()
}

async fn rules(nft: &Nft, chain: &str) -> usize {
    nft.rules(Some(chain)).await.unwrap().len()
}

async fn elements(nft: &Nft, family: Family) -> usize {
    let sets = nft.sets().await.unwrap();
    let set = sets.iter().find(|set| set.name == set_name(family));
    nft.elements(set.unwrap()).await.unwrap().len()
}

#[test]
fn the_rules_are_replaced_as_a_whole_and_taken_away() {
    isolated_async(|| async {
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(keeper.run(stop.clone()));
        table.epochs().wait_for(|epoch| *epoch > 0).await.unwrap();
        let nft = &table.nft;
        for networks in [&["10.42.0.0/16", "fd42::/48"][..], &["10.42.0.0/16"]] {
            nft.commit(&close(&ranges(networks))).await.unwrap();
            assert_eq!(rules(nft, ENCRYPTION_OUT).await, 2);
            assert_eq!(rules(nft, ENCRYPTION_LEAVING).await, 2);
            assert_eq!(rules(nft, ENCRYPTION_IN).await, 2);
            assert_eq!(rules(nft, WAYS_OUT).await, 5);
            assert_eq!(rules(nft, WAYS_LEAVING).await, 5);
            assert_eq!(rules(nft, WAYS_IN).await, 5);
            assert_eq!(elements(nft, Family::Ip4).await, 1);
            assert_eq!(elements(nft, Family::Ip6).await, networks.len() - 1);
        }
        nft.commit(&open()).await.unwrap();
        assert_eq!(rules(nft, ENCRYPTION_OUT).await, 0);
        assert_eq!(rules(nft, ENCRYPTION_LEAVING).await, 0);
        assert_eq!(rules(nft, ENCRYPTION_IN).await, 0);
        stop.cancel();
    });
}

#[test]
fn pods_wait_for_the_rules_and_for_nothing_where_there_are_none() {
    isolated_async(|| async {
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        let (tell, told) = watch::channel(Told::Nothing);
        let (know, guarded) = watch::channel(None);
        let gate = watch::Sender::new(false);
        let guard = Guard {
            table: table.clone(),
            told,
            guarded,
            gate: gate.clone(),
        };
        tokio::spawn(guard.run(stop.clone()));
        let mut is_open = gate.subscribe();
        let setting = Setting {
            port: 51820,
            cluster: Box::default(),
        };
        tell.send_replace(Told::Encrypted(setting));
        know.send_replace(Some(ranges(&["10.42.0.0/16"])));
        // The table is not there yet: nothing opens the gate but its coming.
        tokio::task::yield_now().await;
        assert!(!*is_open.borrow_and_update());
        tokio::spawn(keeper.run(stop.clone()));
        is_open.wait_for(|is_open| *is_open).await.unwrap();
        assert_eq!(rules(&table.nft, ENCRYPTION_OUT).await, 2);
        // Who takes the table away finds the rules in it again.
        let mut batch = crate::network::nft::Batch::new();
        batch.delete_table();
        Nft::open().unwrap().commit(&batch).await.unwrap();
        let nft = table.nft.clone();
        let mended = async {
            while nft
                .rules(Some(ENCRYPTION_OUT))
                .await
                .map_or(0, |rules| rules.len())
                < 2
            {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let patience = std::time::Duration::from_secs(60);
        tokio::time::timeout(patience, mended).await.unwrap();
        // Others make the pods' network; when it is made here again, pods wait once more.
        know.send_replace(Some(Vec::new()));
        is_open.wait_for(|is_open| !*is_open).await.unwrap();
        assert_eq!(rules(&table.nft, ENCRYPTION_OUT).await, 0);
        know.send_replace(Some(ranges(&["10.42.0.0/16"])));
        is_open.wait_for(|is_open| *is_open).await.unwrap();
        assert_eq!(rules(&table.nft, ENCRYPTION_OUT).await, 2);
        stop.cancel();
    });
    isolated_async(|| async {
        let (table, _keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        let gate = watch::Sender::new(false);
        let guard = Guard {
            table,
            told: watch::channel(Told::Plain).1,
            guarded: watch::channel(None).1,
            gate: gate.clone(),
        };
        tokio::spawn(guard.run(stop.clone()));
        // Without encryption no rule is waited for.
        let mut is_open = gate.subscribe();
        is_open.wait_for(|is_open| *is_open).await.unwrap();
        stop.cancel();
    });
}
