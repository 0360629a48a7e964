//! `coracle doctor`.

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Role {
    Server,
    Agent,
    Both,
}

#[derive(Args, Debug)]
pub struct DoctorCommand {
    /// What the machine is to be
    #[arg(long, value_enum, default_value_t = Role::Both)]
    pub role: Role,
    /// Data directory [default: /var/lib/coracle]
    #[arg(long, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
    /// Address and port that the API is or will be served on
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "CORACLE_LISTEN",
        default_value = "0.0.0.0:6443"
    )]
    pub listen: String,
}
