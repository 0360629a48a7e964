//! A node without pods, on the real runtime. Needs root, as the agent does.

use super::Context;
use crate::csi::Csi;
use crate::network::{CniSettings, Network};
use crate::pods::ledger::Ledger;
use crate::pods::sizes;
use crate::pods::{Confines, Puller, Tallies, Tokens, VolumeWrites};
use crate::runtime::embedded::{Config, EmbeddedRuntime};
use coracle_api::amounts::Amounts;
use coracle_client::clock::Clock;
use coracle_client::connect::{self, Endpoint, Identity, Trust};
use coracle_client::events::Recorder;
use coracle_client::informer::Informers;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The machine may have a configuration of plugins, which is no business of a test's.
fn no_plugins(data_dir: &Path) -> CniSettings {
    CniSettings {
        configurations: data_dir.join("net.d"),
        ..CniSettings::default()
    }
}

/// Nothing listens where its client points.
pub fn bare(data_dir: &Path, stop: &CancellationToken) -> Context {
    let endpoint = Endpoint::new("http://127.0.0.1:1", Trust::Anybody, Identity::anonymous());
    let client = connect::client(&endpoint.unwrap());
    let informers = Informers::new(client.clone(), stop.clone());
    let csi = Csi::new(client.clone(), "edge", data_dir, data_dir);
    let runtime = EmbeddedRuntime::open(Config::new(data_dir)).unwrap();
    Context {
        recorder: Recorder::new(client.clone(), "kubelet", "edge"),
        client,
        csi: Arc::new(csi),
        runtime: Arc::new(runtime),
        network: Arc::new(Network::open(data_dir.join("network"), no_plugins(data_dir)).unwrap()),
        clock: Clock::system(),
        view: Default::default(),
        dns: Default::default(),
        resolv_conf: None,
        images: Puller::default(),
        tokens: Tokens::default(),
        volume_writes: VolumeWrites::default(),
        ledger: Ledger::new(sizes::Amounts::default()),
        disks: crate::usage::Disks::default(),
        pressures: crate::pressure::Conditions::default(),
        node_name: "edge".into(),
        node: informers.get(),
        allocatable: Amounts::default(),
        logs: crate::Resources::default().logs,
        tallies: Tallies::default(),
        host: IpAddr::from(Ipv4Addr::LOCALHOST).into(),
        cpu_milli: 1000,
        memory_bytes: 1 << 30,
        data_dir: data_dir.to_owned(),
        local_path: crate::local_path::Directories::default(),
        confines: Confines::default(),
    }
}
