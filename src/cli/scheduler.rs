//! `coracle scheduler`.

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct SchedulerCommand {
    #[command(subcommand)]
    pub what: SchedulerWhat,
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
