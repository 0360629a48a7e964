//! Flags of the control loops, for a server and for loops in a process of their own.

use clap::Args;

/// Of the control loops, in a server's process or in their own.
#[derive(Args, Clone, Debug, Default)]
pub struct LoopArgs {
    /// Addresses for pods; one network of each IP family with a comma between them for both
    /// [default: 10.42.0.0/16]
    #[arg(long, value_name = "CIDR", env = "CORACLE_CLUSTER_CIDR")]
    pub cluster_cidr: Option<String>,
    /// Addresses for Services of type LoadBalancer, one each: networks or ranges with commas between
    /// them, whose routes lead to a node [default: none; such Services get the nodes' addresses]
    #[arg(
        long,
        value_name = "CIDR",
        env = "CORACLE_LOAD_BALANCER_POOL",
        value_delimiter = ','
    )]
    pub load_balancer_pool: Vec<String>,
    /// How long a node may be silent before it counts as lost [default: 40s]
    #[arg(
        long,
        value_name = "DURATION",
        env = "CORACLE_NODE_MONITOR_GRACE_PERIOD"
    )]
    pub node_monitor_grace_period: Option<String>,
    /// How long a token that an old cluster made in a Secret may go unused before it is marked as
    /// invalid, and then until it is deleted [default: 8760h]
    #[arg(
        long,
        value_name = "DURATION",
        env = "CORACLE_LEGACY_SERVICE_ACCOUNT_TOKEN_CLEAN_UP_PERIOD"
    )]
    pub legacy_service_account_token_clean_up_period: Option<String>,
}
