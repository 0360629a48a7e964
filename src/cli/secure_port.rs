//! The port of a scheduler, or of controllers, that are a process of their own. Flags have the names
//! of kube-scheduler's.

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub struct PortArgs {
    /// Port of HTTPS for health, metrics and configuration, 0 for none [default: 10259 of the
    /// scheduler, 10257 of the controllers]
    #[arg(long, value_name = "PORT", env = "CORACLE_SECURE_PORT")]
    pub secure_port: Option<String>,
    /// Address on which it is served [default: 0.0.0.0]
    #[arg(long, value_name = "ADDRESS", env = "CORACLE_BIND_ADDRESS")]
    pub bind_address: Option<String>,
    /// Certificate that it shows [default: one made at each start]
    #[arg(long, value_name = "FILE", env = "CORACLE_TLS_CERT_FILE")]
    pub tls_cert_file: Option<String>,
    /// Key of that certificate
    #[arg(long, value_name = "FILE", env = "CORACLE_TLS_PRIVATE_KEY_FILE")]
    pub tls_private_key_file: Option<String>,
    /// Authority whose certificates clients may show [default: the one that the API server of
    /// --authentication-kubeconfig tells of]
    #[arg(long, value_name = "FILE", env = "CORACLE_CLIENT_CA_FILE")]
    pub client_ca_file: Option<String>,
    /// Kubeconfig of the API server that is asked whose a token is; without it every token is
    /// nobody's
    #[arg(long, value_name = "FILE", env = "CORACLE_AUTHENTICATION_KUBECONFIG")]
    pub authentication_kubeconfig: Option<String>,
    /// Kubeconfig of the API server that is asked who may read what; without it only
    /// --authorization-always-allow-paths and the group system:masters may
    #[arg(long, value_name = "FILE", env = "CORACLE_AUTHORIZATION_KUBECONFIG")]
    pub authorization_kubeconfig: Option<String>,
    /// Path that everybody may read, with a * at its end for all below; may be repeated [default:
    /// /healthz,/readyz,/livez]
    #[arg(
        long,
        value_name = "PATH",
        env = "CORACLE_AUTHORIZATION_ALWAYS_ALLOW_PATHS",
        value_delimiter = ','
    )]
    pub authorization_always_allow_paths: Option<Vec<String>>,
}
