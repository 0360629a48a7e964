//! The table in the kernel, in network namespaces of the tests' own.

use super::{BASES, HOST_PORTS, Keeper, SERVICES, Table, make, remove};
use crate::network::nft::{Batch, Chain, ChainType, Hook, Nft, Rule};
use crate::network::testing::isolated_async;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

async fn names(nft: &Nft) -> BTreeSet<String> {
    let chains = nft.chains().await.unwrap();
    chains.into_iter().map(|chain| chain.name).collect()
}

#[test]
fn all_chains_are_made_once_and_what_parts_wrote_stays() {
    isolated_async(|| async {
        let nft = Nft::open().unwrap();
        make(&nft).await.unwrap();
        let all = names(&nft).await;
        for base in &BASES {
            assert!(all.contains(base.name));
            assert!(base.leads_to.iter().all(|part| all.contains(*part)));
        }
        let mut batch = Batch::new();
        batch.add_chain(&Chain::plain("svc-x"));
        batch.add_rule(&Rule::new(SERVICES).jump("svc-x"));
        nft.commit(&batch).await.unwrap();
        let before = nft.table().await.unwrap();
        make(&nft).await.unwrap();
        assert_eq!(nft.table().await.unwrap(), before);
        assert_eq!(nft.rules(Some(SERVICES)).await.unwrap().len(), 1);
        assert_eq!(nft.rules(Some("nat-output")).await.unwrap().len(), 2);
        remove().await.unwrap();
        remove().await.unwrap();
        assert_eq!(nft.table().await.unwrap(), None);
    });
}

#[test]
fn a_table_of_another_layout_is_made_anew() {
    isolated_async(|| async {
        let nft = Nft::open().unwrap();
        let mut batch = Batch::new();
        batch.add_table();
        batch.add_chain(&Chain::base("nat-output", ChainType::Nat, Hook::Output, -1));
        batch.add_chain(&Chain::plain("old"));
        nft.commit(&batch).await.unwrap();
        make(&nft).await.unwrap();
        let all = names(&nft).await;
        assert!(!all.contains("old") && all.contains(HOST_PORTS));
    });
}

#[test]
fn a_flush_by_someone_else_is_mended() {
    isolated_async(|| async {
        let (table, keeper) = Table::open().unwrap();
        let stop = CancellationToken::new();
        let keeping = tokio::spawn(Keeper::run(keeper, stop.clone()));
        let mut epochs = table.epochs();
        epochs.wait_for(|epoch| *epoch == 1).await.unwrap();
        let other = Nft::open().unwrap();
        let mut batch = Batch::new();
        batch.delete_table();
        other.commit(&batch).await.unwrap();
        epochs.wait_for(|epoch| *epoch == 2).await.unwrap();
        assert!(names(&other).await.contains(SERVICES));
        // What the parts do themselves is no disturbance.
        let mut batch = Batch::new();
        batch.add_rule(&Rule::new(SERVICES).counter());
        table.nft.commit(&batch).await.unwrap();
        let mut batch = Batch::new();
        batch.flush_chain("nat-output");
        other.commit(&batch).await.unwrap();
        epochs.wait_for(|epoch| *epoch == 3).await.unwrap();
        assert_eq!(other.rules(Some("nat-output")).await.unwrap().len(), 2);
        assert_eq!(other.rules(Some(SERVICES)).await.unwrap().len(), 1);
        stop.cancel();
        keeping.await.unwrap();
    });
}
