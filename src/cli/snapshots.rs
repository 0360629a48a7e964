//! `coracle snapshot` on the command line.

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct SnapshotCommand {
    #[command(subcommand)]
    pub action: SnapshotAction,
    /// Data directory of the server [default: /var/lib/coracle]
    #[arg(long, global = true, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
    /// File with the passphrase under which the cluster's keys are in the snapshot: its first line
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "CORACLE_SNAPSHOT_PASSPHRASE_FILE"
    )]
    pub passphrase_file: Option<String>,
    /// As the server's flag
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "CORACLE_SECRETS_KEY_FILE"
    )]
    pub secrets_key_file: Option<String>,
    /// As the server's flag
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "CORACLE_ENCRYPTION_PROVIDER_CONFIG"
    )]
    pub encryption_provider_config: Option<String>,
}

/// What a server takes by itself.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct RingArgs {
    /// How often a snapshot of the objects is taken, if anything changed; 0 for never [default: 6h]
    #[arg(long, value_name = "DURATION", env = "CORACLE_SNAPSHOT_INTERVAL")]
    pub snapshot_interval: Option<String>,
    /// How many of these are kept [default: 5]
    #[arg(long, value_name = "COUNT", env = "CORACLE_SNAPSHOT_RETENTION")]
    pub snapshot_retention: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SnapshotAction {
    /// Save a snapshot, whether the server runs or not
    Save(SaveArgs),
    /// List the snapshots that the server took by itself
    #[command(alias = "ls")]
    List,
    /// Check a snapshot from end to end and say what is in it
    #[command(alias = "status")]
    Verify(VerifyArgs),
    /// Put a snapshot in the place of a store, or where there is none
    Restore(RestoreArgs),
}

#[derive(Args, Debug)]
pub struct SaveArgs {
    /// Where to write it; what has that name is replaced
    pub file: String,
    /// Kubeconfig of an administrator: the snapshot is of the server that it names [default: that of
    /// --data-dir]
    #[arg(long, value_name = "FILE", env = "CORACLE_KUBECONFIG")]
    pub kubeconfig: Option<String>,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The snapshot
    pub file: String,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The snapshot
    pub file: String,
    /// Also in the place of a store with nothing wrong with it
    #[arg(long)]
    pub replace: bool,
}
