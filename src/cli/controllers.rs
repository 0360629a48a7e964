//! `coracle controllers`. Flags have the names of kube-controller-manager's where it has them.

use super::{LoopArgs, PortArgs};
use clap::Args;

#[derive(Args, Debug, Default)]
pub struct ControllersCommand {
    /// Log level: error, warn, info, debug, trace, or a filter such as info,coracle_controllers=debug
    #[arg(long, value_name = "LEVEL", env = "CORACLE_LOG")]
    pub log: Option<String>,
    /// Kubeconfig of the API server
    #[arg(long, value_name = "FILE", env = "CORACLE_KUBECONFIG")]
    pub kubeconfig: String,
    /// Run the loops only while this process holds the Lease kube-system/kube-controller-manager:
    /// true or false [default: true]
    #[arg(long, value_name = "BOOL", env = "CORACLE_LEADER_ELECT")]
    pub leader_elect: Option<String>,
    /// Let each loop act as its own service account of kube-system, which the kubeconfig's user must
    /// be allowed to impersonate
    #[arg(long, env = "CORACLE_USE_SERVICE_ACCOUNT_CREDENTIALS")]
    pub use_service_account_credentials: bool,
    #[command(flatten)]
    pub loops: LoopArgs,
    /// Certificate of the authority that every namespace is told of; without it the loop root-ca
    /// does not run
    #[arg(long, value_name = "FILE", env = "CORACLE_ROOT_CA_FILE")]
    pub root_ca_file: Option<String>,
    /// Certificate of the authority that signs those of nodes; without it and its key the loop
    /// csr-sign does not run
    #[arg(long, value_name = "FILE", env = "CORACLE_CLUSTER_SIGNING_CERT_FILE")]
    pub cluster_signing_cert_file: Option<String>,
    /// Key of that authority
    #[arg(long, value_name = "FILE", env = "CORACLE_CLUSTER_SIGNING_KEY_FILE")]
    pub cluster_signing_key_file: Option<String>,
    /// Name of a loop that shall not run; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "CORACLE_DISABLE",
        value_delimiter = ','
    )]
    pub disable: Vec<String>,
    #[command(flatten)]
    pub port: PortArgs,
}
