//! `coracle scheduler`. Flags have the names of kube-scheduler's where it has them.

use super::PortArgs;
use clap::{Args, Subcommand};

#[derive(Args, Debug, Default)]
pub struct SchedulerCommand {
    #[command(subcommand)]
    pub what: Option<SchedulerWhat>,
    /// Log level: error, warn, info, debug, trace, or a filter such as info,coracle_scheduler=debug
    #[arg(long, value_name = "LEVEL", env = "CORACLE_LOG")]
    pub log: Option<String>,
    /// Kubeconfig of the API server; needed to run the scheduler
    #[arg(long, value_name = "FILE", env = "CORACLE_KUBECONFIG")]
    pub kubeconfig: Option<String>,
    /// Profiles, plugins and their arguments: a kubescheduler.config.k8s.io/v1
    /// KubeSchedulerConfiguration
    #[arg(long, value_name = "FILE", env = "CORACLE_SCHEDULER_CONFIG")]
    pub config: Option<String>,
    /// Schedule only while this process holds the Lease kube-system/kube-scheduler: true or false
    /// [default: true, or what the file says]
    #[arg(long, value_name = "BOOL", env = "CORACLE_LEADER_ELECT")]
    pub leader_elect: Option<String>,
    #[command(flatten)]
    pub port: PortArgs,
}

#[derive(Debug, Subcommand)]
pub enum SchedulerWhat {
    /// Tell why a pod goes to which node: every filter's verdict and every score, as things are now
    Explain(ExplainArgs),
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Name of the pod
    pub pod: String,
    /// Its namespace
    #[arg(long, short, default_value = "default")]
    pub namespace: String,
    /// Kubeconfig of the API server
    #[arg(
        long,
        value_name = "FILE",
        env = "KUBECONFIG",
        default_value = "/var/lib/coracle/admin.kubeconfig"
    )]
    pub kubeconfig: String,
    /// JSON for a program instead of a table
    #[arg(long)]
    pub json: bool,
}
