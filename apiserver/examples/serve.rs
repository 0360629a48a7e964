//! Serves the API alone, on a free port and over a temporary store, until Ctrl-C: for a try with
//! kubectl. Prints the path of the kubeconfig.

use coracle_apiserver::{Config, Server};
use coracle_store::Store;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[allow(clippy::disallowed_methods)] // A program of its own, and its clock is the machine's.
fn clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

#[tokio::main]
#[allow(clippy::print_stdout)] // The path is what this program is for.
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let store = Store::open(coracle_store::Config::new(directory.path().join("store")))?;
    let config = Config {
        data_dir: directory.path().to_owned(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        advertise_address: None,
        host_name: "edge".to_owned(),
        tls_sans: Vec::new(),
        service_cidr: "10.43.0.0/16".to_owned(),
        cluster_dns: None,
        pod_encryption: None,
        limits: coracle_apiserver::config::Limits::default(),
        event_ttl: coracle_apiserver::config::EVENT_TTL,
        audit: None,
        metrics: true,
        at_rest: None,
        access: coracle_apiserver::access::Settings::default(),
        admission: Default::default(),
        clock: Arc::new(clock),
    };
    let server = Server::build(config, store.clone()).await?;
    let kubeconfig = directory.path().join("admin.kubeconfig");
    std::fs::write(&kubeconfig, server.admin_kubeconfig()?.text)?;
    println!("{}", kubeconfig.display());
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        drop(tokio::signal::ctrl_c().await);
        stopping.cancel();
    });
    server.run(stop).await;
    store.close().await;
    Ok(())
}
