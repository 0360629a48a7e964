//! The command line: what can be said, not whether it is right.
//!
//! Every value stays text here; `settings` checks them all, together with the file and the
//! environment, and says in one line what is wrong.

mod controllers;
mod doctor;
mod loops;
mod resources;
mod scheduler;
mod secure_port;
mod snapshots;

pub use controllers::ControllersCommand;
pub use doctor::{DoctorCommand, Role};
pub use loops::LoopArgs;
pub use resources::ResourceArgs;
pub use scheduler::{ExplainArgs, SchedulerCommand, SchedulerWhat};
pub use secure_port::PortArgs;
pub use snapshots::{RestoreArgs, RingArgs, SaveArgs, SnapshotAction, SnapshotCommand};

use clap::{Args, Parser, Subcommand};

/// Kubernetes small enough for the edge.
#[derive(Debug, Parser)]
#[command(name = "coracle", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the control plane and a node in one process on this machine
    Up(Box<UpArgs>),
    /// Run the control plane: API server, store, controllers and scheduler
    Server(Box<ServerCommand>),
    /// Run the controllers alone, against any API server
    Controllers(Box<ControllersCommand>),
    /// Run the scheduler alone, against any API server, or ask it why it places a pod as it does
    Scheduler(Box<SchedulerCommand>),
    /// Run this machine as a node of a cluster
    Agent(Box<AgentCommand>),
    /// Make, list and delete the tokens that nodes enrol with
    Token(TokenCommand),
    /// Change the key that Secrets are encrypted with on disk
    Secrets(SecretsCommand),
    /// Save, verify and restore snapshots: the cluster's objects and its keys in one file
    Snapshot(Box<SnapshotCommand>),
    /// Make kubeconfigs for people and programs, and take back the ones that leaked
    Kubeconfig(Box<KubeconfigCommand>),
    /// Work with the images of a node
    Image(ImageCommand),
    /// Check whether this machine can be a server and a node, and tell what to do about it
    Doctor(DoctorCommand),
    /// Print a completion script for a shell
    Completion {
        /// bash, elvish, fish, powershell or zsh
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version,
    /// End the containers of a node and take away what it made on this machine, bar its images
    #[command(hide = true)]
    Wipe {
        /// Data directory of the node [default: /var/lib/coracle]
        #[arg(long, value_name = "DIR", env = "CORACLE_DATA_DIR")]
        data_dir: Option<String>,
    },
    /// Serve the demo page (the demo Deployment runs this)
    #[command(hide = true)]
    DemoPage {
        #[arg(long, default_value = "0.0.0.0:8080")]
        listen: String,
    },
}

/// Flags that every long-running command takes.
#[derive(Args, Clone, Debug, Default)]
pub struct CommonArgs {
    /// A YAML file with the same keys as the flags, without the dashes
    #[arg(long, value_name = "FILE", env = "CORACLE_CONFIG")]
    pub config: Option<String>,
    /// Where everything is kept [default: /var/lib/coracle]
    #[arg(long, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
    /// Log level: error, warn, info, debug, trace, or a filter such as info,coracle_agent=debug
    #[arg(long, value_name = "LEVEL", env = "CORACLE_LOG")]
    pub log: Option<String>,
}

/// Of a server, and of an agent alone; `up` has the server's.
#[derive(Args, Clone, Debug, Default)]
pub struct DnsArgs {
    /// Address that pods ask for names, or one of each IP family. Of a server: the tenth of
    /// --service-cidr by default; of an agent: what its cluster says
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "CORACLE_CLUSTER_DNS",
        value_delimiter = ','
    )]
    pub cluster_dns: Vec<String>,
    /// What names of Services end in [default: cluster.local, or what the cluster says]
    #[arg(long, value_name = "DOMAIN", env = "CORACLE_CLUSTER_DOMAIN")]
    pub cluster_domain: Option<String>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct ServerArgs {
    /// Address and port to serve the API on [default: 0.0.0.0:6443]
    #[arg(long, value_name = "ADDRESS:PORT", env = "CORACLE_LISTEN")]
    pub listen: Option<String>,
    /// Address that clients and nodes reach the server by [default: found on this machine]
    #[arg(long, value_name = "ADDRESS", env = "CORACLE_ADVERTISE_ADDRESS")]
    pub advertise_address: Option<String>,
    /// Another name or address for the server's certificate; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "CORACLE_TLS_SAN",
        value_delimiter = ','
    )]
    pub tls_san: Vec<String>,
    /// Encrypt what nodes send each other's pods, by WireGuard: true or false [default: false]
    #[arg(
        long,
        value_name = "BOOL",
        env = "CORACLE_ENCRYPT_POD_NETWORK",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub encrypt_pod_network: Option<String>,
    /// UDP port of WireGuard on all nodes [default: 51820]
    #[arg(long, value_name = "PORT", env = "CORACLE_WIREGUARD_PORT")]
    pub wireguard_port: Option<String>,
    /// Addresses for Services; one network of each IP family with a comma between them for both
    /// [default: 10.43.0.0/16]
    #[arg(long, value_name = "CIDR", env = "CORACLE_SERVICE_CIDR")]
    pub service_cidr: Option<String>,
    #[command(flatten)]
    pub loops: LoopArgs,
    #[command(flatten)]
    pub dns: DnsArgs,
    /// Where to write the admin's kubeconfig [default: <data-dir>/admin.kubeconfig]
    #[arg(long, value_name = "FILE", env = "CORACLE_WRITE_KUBECONFIG")]
    pub write_kubeconfig: Option<String>,
    /// Reads worked on at a time; together with the writes these are the seats that priority levels
    /// share [default: 200]
    #[arg(long, value_name = "COUNT", env = "CORACLE_MAX_REQUESTS_INFLIGHT")]
    pub max_requests_inflight: Option<String>,
    /// Writes worked on at a time [default: 100]
    #[arg(
        long,
        value_name = "COUNT",
        env = "CORACLE_MAX_MUTATING_REQUESTS_INFLIGHT"
    )]
    pub max_mutating_requests_inflight: Option<String>,
    /// Connections of clients at a time; a newcomer gets the place of one that is idle [default: 4096,
    /// or half of the files that may be open]
    #[arg(long, value_name = "COUNT", env = "CORACLE_MAX_CONNECTIONS")]
    pub max_connections: Option<String>,
    /// How long an Event is kept after it was last written; 0 for ever [default: 1h]
    #[arg(long, value_name = "DURATION", env = "CORACLE_EVENT_TTL")]
    pub event_ttl: Option<String>,
    #[command(flatten)]
    pub ring: RingArgs,
    /// The keys that Secrets are encrypted with on disk, made at the first start
    /// [default: <data-dir>/server/pki/secrets.key]
    #[arg(long, value_name = "FILE", env = "CORACLE_SECRETS_KEY_FILE")]
    pub secrets_key_file: Option<String>,
    /// What to encrypt on disk with which keys instead: an apiserver.config.k8s.io/v1
    /// EncryptionConfiguration
    #[arg(long, value_name = "FILE", env = "CORACLE_ENCRYPTION_PROVIDER_CONFIG")]
    pub encryption_provider_config: Option<String>,
    /// What to record of which requests: an audit.k8s.io/v1 Policy
    #[arg(long, value_name = "FILE", env = "CORACLE_AUDIT_POLICY_FILE")]
    pub audit_policy_file: Option<String>,
    /// Where to record requests, one line of JSON each; - for standard output
    #[arg(long, value_name = "FILE", env = "CORACLE_AUDIT_LOG_PATH")]
    pub audit_log_path: Option<String>,
    /// Days to keep old audit logs; 0 for ever [default: 30]
    #[arg(long, value_name = "DAYS", env = "CORACLE_AUDIT_LOG_MAXAGE")]
    pub audit_log_maxage: Option<String>,
    /// How many old audit logs to keep; 0 for all [default: 4]
    #[arg(long, value_name = "COUNT", env = "CORACLE_AUDIT_LOG_MAXBACKUP")]
    pub audit_log_maxbackup: Option<String>,
    /// Megabytes after which the audit log is moved aside; 0 for never [default: 20]
    #[arg(long, value_name = "MEGABYTES", env = "CORACLE_AUDIT_LOG_MAXSIZE")]
    pub audit_log_maxsize: Option<String>,
    /// Tokens of users that are not the cluster's own: token,user,uid,"group1,group2" on each line
    #[arg(long, value_name = "FILE", env = "CORACLE_TOKEN_AUTH_FILE")]
    pub token_auth_file: Option<String>,
    /// Issuers of tokens (OpenID Connect), and who may come without a user: an
    /// apiserver.config.k8s.io/v1 AuthenticationConfiguration, read again when it changes
    #[arg(long, value_name = "FILE", env = "CORACLE_AUTHENTICATION_CONFIG")]
    pub authentication_config: Option<String>,
    /// Whether requests may come without a user: true or false [default: true]
    #[arg(long, value_name = "BOOL", env = "CORACLE_ANONYMOUS_AUTH")]
    pub anonymous_auth: Option<String>,
    /// What the API takes a token for; may be repeated [default: the issuers]
    #[arg(
        long,
        value_name = "NAME",
        env = "CORACLE_API_AUDIENCES",
        value_delimiter = ','
    )]
    pub api_audiences: Vec<String>,
    /// Issuer of service accounts' tokens; may be repeated: the first issues, tokens of all are
    /// taken [default: https://kubernetes.default.svc.cluster.local]
    #[arg(
        long,
        value_name = "NAME",
        env = "CORACLE_SERVICE_ACCOUNT_ISSUER",
        value_delimiter = ','
    )]
    pub service_account_issuer: Vec<String>,
    /// Keys whose tokens of service accounts are taken too, in PEM; may be repeated
    #[arg(
        long,
        value_name = "FILE",
        env = "CORACLE_SERVICE_ACCOUNT_KEY_FILE",
        value_delimiter = ','
    )]
    pub service_account_key_file: Vec<String>,
    /// Private key that signs tokens of service accounts [default: one in the data directory]
    #[arg(
        long,
        value_name = "FILE",
        env = "CORACLE_SERVICE_ACCOUNT_SIGNING_KEY_FILE"
    )]
    pub service_account_signing_key_file: Option<String>,
    /// Where others find the keys of service accounts' tokens [default: at this server]
    #[arg(long, value_name = "URL", env = "CORACLE_SERVICE_ACCOUNT_JWKS_URI")]
    pub service_account_jwks_uri: Option<String>,
    /// What admission plugins take: an apiserver.config.k8s.io/v1 AdmissionConfiguration
    #[arg(
        long,
        value_name = "FILE",
        env = "CORACLE_ADMISSION_CONTROL_CONFIG_FILE"
    )]
    pub admission_control_config_file: Option<String>,
    /// Admission plugins that are not asked: PodSecurity, LimitRanger, ...
    #[arg(
        long,
        value_name = "NAME",
        env = "CORACLE_DISABLE_ADMISSION_PLUGINS",
        value_delimiter = ','
    )]
    pub disable_admission_plugins: Vec<String>,
    /// Profiles of the scheduler, plugins and their arguments: a kubescheduler.config.k8s.io/v1
    /// KubeSchedulerConfiguration
    #[arg(long, value_name = "FILE", env = "CORACLE_SCHEDULER_CONFIG")]
    pub scheduler_config: Option<String>,
    /// Components or control loops to leave out: scheduler, controllers, node-lifecycle, ...
    #[arg(
        long,
        value_name = "NAME",
        env = "CORACLE_DISABLE",
        value_delimiter = ','
    )]
    pub disable: Vec<String>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct AgentArgs {
    /// URL of the server, such as https://gateway:6443
    #[arg(long, value_name = "URL", env = "CORACLE_SERVER")]
    pub server: Option<String>,
    /// Token to enrol with, from `coracle token create`
    #[arg(
        long,
        value_name = "TOKEN",
        env = "CORACLE_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// File that holds the token
    #[arg(long, value_name = "FILE", env = "CORACLE_TOKEN_FILE")]
    pub token_file: Option<String>,
    /// Kubeconfig of a cluster whose API server is not Coracle's, which the node joins
    #[arg(long, value_name = "FILE", env = "CORACLE_NODE_KUBECONFIG")]
    pub kubeconfig: Option<String>,
    /// The same with a kubeconfig that may only ask for the node's certificate
    #[arg(long, value_name = "FILE", env = "CORACLE_BOOTSTRAP_KUBECONFIG")]
    pub bootstrap_kubeconfig: Option<String>,
    /// Port on which such a cluster's API server finds the node [default: 10250]
    #[arg(long, value_name = "PORT", env = "CORACLE_KUBELET_PORT")]
    pub kubelet_port: Option<String>,
    /// Authority of the certificates that clients of that port show [default: what the API server
    /// tells of it]
    #[arg(long, value_name = "FILE", env = "CORACLE_CLIENT_CA_FILE")]
    pub client_ca_file: Option<String>,
    /// Network, or one of each IP family, of such a cluster's pods: what pods send there keeps their
    /// address; 0.0.0.0/0 for all [default: the node's podCIDR]
    #[arg(long, value_name = "CIDR", env = "CORACLE_NON_MASQUERADE_CIDR")]
    pub non_masquerade_cidr: Option<String>,
    /// Name of the node [default: this machine's host name]
    #[arg(long, value_name = "NAME", env = "CORACLE_NODE_NAME")]
    pub node_name: Option<String>,
    /// Address of the node, or one of each IP family with a comma between them [default: that of
    /// the route to the server]
    #[arg(long, value_name = "ADDRESS", env = "CORACLE_NODE_IP")]
    pub node_ip: Option<String>,
    /// Label for the node; may be repeated
    #[arg(
        long,
        value_name = "KEY=VALUE",
        env = "CORACLE_NODE_LABEL",
        value_delimiter = ','
    )]
    pub node_label: Vec<String>,
    /// Taint for the node; may be repeated
    #[arg(
        long,
        value_name = "KEY=VALUE:EFFECT",
        env = "CORACLE_NODE_TAINT",
        value_delimiter = ','
    )]
    pub node_taint: Vec<String>,
    /// Sysctl that pods may set though it is not safe, such as net.core.somaxconn or kernel.msg*;
    /// may be repeated
    #[arg(
        long,
        value_name = "PATTERN",
        env = "CORACLE_ALLOWED_UNSAFE_SYSCTLS",
        value_delimiter = ','
    )]
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Run containers that say nothing of seccomp under the profile RuntimeDefault: true or false
    /// [default: false]
    #[arg(long, value_name = "BOOL", env = "CORACLE_SECCOMP_DEFAULT")]
    pub seccomp_default: Option<String>,
    /// Processes that each pod may have [default: no bound of its own]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "CORACLE_POD_MAX_PIDS",
        allow_negative_numbers = true
    )]
    pub pod_max_pids: Option<String>,
    /// Directory with files of pods that run on this node, server or no server
    #[arg(long, value_name = "DIR", env = "CORACLE_STATIC_PODS")]
    pub static_pods: Option<String>,
    /// Directory that drivers of volumes are made for, made a link to the agent's own [default:
    /// /var/lib/kubelet with the default data directory and when nothing else is there]
    #[arg(long, value_name = "DIR", env = "CORACLE_KUBELET_DIR")]
    pub kubelet_dir: Option<String>,
    /// Directory in which volumes of the class local-path are made; empty for none [default:
    /// local-path below the data directory]
    #[arg(long, value_name = "DIR", env = "CORACLE_LOCAL_PATH_DIR")]
    pub local_path_dir: Option<String>,
    #[command(flatten)]
    pub resources: ResourceArgs,
    /// Socket of a container runtime that speaks CRI v1, such as
    /// unix:///run/containerd/containerd.sock [default: the runtime that is built in]
    #[arg(
        long,
        value_name = "SOCKET",
        env = "CORACLE_CONTAINER_RUNTIME_ENDPOINT"
    )]
    pub container_runtime_endpoint: Option<String>,
    /// Socket of its images [default: that of the runtime]
    #[arg(long, value_name = "SOCKET", env = "CORACLE_IMAGE_SERVICE_ENDPOINT")]
    pub image_service_endpoint: Option<String>,
    /// The node's resolvers, for its pods and for names that are not the cluster's
    /// [default: /etc/resolv.conf; for pods what systemd-resolved has behind it]
    #[arg(long, value_name = "FILE", env = "CORACLE_RESOLV_CONF")]
    pub resolv_conf: Option<String>,
    /// Directory of the configuration of network plugins; the first one by name makes the pods'
    /// network in place of the agent [default: /etc/cni/net.d]
    #[arg(long, value_name = "DIR", env = "CORACLE_CNI_CONF_DIR")]
    pub cni_conf_dir: Option<String>,
    /// Directories of network plugins, in the order in which they are looked in
    /// [default: /opt/cni/bin,/usr/lib/cni]
    #[arg(
        long,
        value_name = "DIR",
        env = "CORACLE_CNI_BIN_DIR",
        value_delimiter = ','
    )]
    pub cni_bin_dir: Vec<String>,
    /// After which a network plugin is killed [default: 60s]
    #[arg(long, value_name = "DURATION", env = "CORACLE_CNI_TIMEOUT")]
    pub cni_timeout: Option<String>,
    /// Route Services on this node: true or false [default: true, and false in a cluster that is
    /// not Coracle's, which has a kube-proxy]
    #[arg(long, value_name = "BOOL", env = "CORACLE_ROUTE_SERVICES")]
    pub route_services: Option<String>,
    /// Where the node answers load balancers whether it routes Services, on /healthz; none for
    /// nowhere [default: 0.0.0.0:10256]
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "CORACLE_PROXY_HEALTHZ_BIND_ADDRESS"
    )]
    pub proxy_healthz_bind_address: Option<String>,
    /// Where the node says how it routes Services, on /proxyMode as kube-proxy does; none for nowhere
    /// [default: 127.0.0.1:10249]
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "CORACLE_PROXY_METRICS_BIND_ADDRESS"
    )]
    pub proxy_metrics_bind_address: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub struct UpArgs {
    /// Run the demo: three pods, a tour of them, and nothing left behind at the end
    #[arg(long)]
    pub demo: bool,
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Args, Clone, Debug)]
pub struct ServerCommand {
    /// Put back the newest snapshot of the store, then serve
    #[arg(long)]
    pub restore_snapshot: bool,
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Args, Clone, Debug)]
pub struct AgentCommand {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub dns: DnsArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Args, Debug)]
pub struct TokenCommand {
    #[command(subcommand)]
    pub action: TokenAction,
    /// Admin kubeconfig [default: <data-dir>/admin.kubeconfig]
    #[arg(long, global = true, value_name = "FILE", env = "CORACLE_KUBECONFIG")]
    pub kubeconfig: Option<String>,
    /// Data directory of the server [default: /var/lib/coracle]
    #[arg(long, global = true, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make a token and print it
    Create {
        /// How long it is good for, such as 24h; 0 for ever
        #[arg(long, value_name = "DURATION", default_value = "24h")]
        ttl: String,
        /// What it is for
        #[arg(long, default_value = "")]
        description: String,
    },
    /// List the tokens, without their secrets
    List,
    /// Delete a token by its id or by the whole token
    Delete {
        /// Id or token
        token: String,
    },
}

/// Without a command a kubeconfig is made: the admin's, or that of --user.
#[derive(Args, Debug)]
pub struct KubeconfigCommand {
    #[command(subcommand)]
    pub action: Option<KubeconfigAction>,
    #[command(flatten)]
    pub issue: IssueArgs,
    /// URL of the server [default: as in <data-dir>/admin.kubeconfig]
    #[arg(long, global = true, value_name = "URL", env = "CORACLE_SERVER")]
    pub server: Option<String>,
    /// Data directory of the server [default: /var/lib/coracle]
    #[arg(long, global = true, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
}

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueArgs {
    /// Whose it is [default: kubernetes-admin in system:masters]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Group of the user; may be repeated
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// How long it is good for, such as 24h [default: 8760h, a year]
    #[arg(long, value_name = "DURATION")]
    pub lifetime: Option<String>,
    /// Where to write it, with mode 0600; - for standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum KubeconfigAction {
    /// Take back kubeconfigs before their end; the running server refuses them at once
    Revoke(RevokeArgs),
    /// List what was taken back
    Revoked,
}

#[derive(Args, Debug, Default)]
#[group(required = true, multiple = true)]
pub struct RevokeArgs {
    /// Kubeconfigs whose certificates are taken back
    pub file: Vec<String>,
    /// Serial number of a certificate, in hexadecimal digits; may be repeated
    #[arg(long, value_name = "NUMBER")]
    pub serial: Vec<String>,
    /// Every certificate of this user that was issued until now; may be repeated
    #[arg(long, value_name = "NAME")]
    pub user: Vec<String>,
}

#[derive(Args, Debug)]
pub struct SecretsCommand {
    #[command(subcommand)]
    pub action: SecretsAction,
    /// Admin kubeconfig [default: <data-dir>/admin.kubeconfig]
    #[arg(long, global = true, value_name = "FILE", env = "CORACLE_KUBECONFIG")]
    pub kubeconfig: Option<String>,
    /// Data directory of the server [default: /var/lib/coracle]
    #[arg(long, global = true, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SecretsAction {
    /// Make a new key, encrypt everything with it, and drop the old one
    Rotate,
}

#[derive(Args, Debug)]
pub struct ImageCommand {
    #[command(subcommand)]
    pub action: ImageAction,
    /// Data directory of the node [default: /var/lib/coracle]
    #[arg(long, global = true, value_name = "DIR", env = "CORACLE_DATA_DIR")]
    pub data_dir: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum ImageAction {
    /// Import an OCI or Docker archive
    Import {
        /// The archive, a tar file, plain or compressed
        file: String,
    },
    /// Pull an image from its registry
    Pull {
        /// Such as docker.io/library/busybox:1.36
        image: String,
    },
    /// List the images
    List,
    /// Keep an image for good: it is not removed when the disk runs full
    Pin {
        /// Name or digest
        image: String,
    },
    /// Take the mark away that keeps an image
    Unpin {
        /// Name or digest
        image: String,
    },
    /// Remove an image
    Remove {
        /// Name or digest
        image: String,
    },
}
