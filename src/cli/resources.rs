//! What of a machine is for pods, and what its node does when that runs short. Names and forms are
//! the kubelet's.

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Resources of the node")]
pub struct ResourceArgs {
    /// Kept for the machine's own services: cpu, memory, ephemeral-storage, pid
    #[arg(
        long,
        value_name = "NAME=QUANTITY",
        env = "CORACLE_SYSTEM_RESERVED",
        value_delimiter = ','
    )]
    pub system_reserved: Vec<String>,
    /// Kept for the agent and its runtime: cpu, memory, ephemeral-storage, pid
    #[arg(
        long,
        value_name = "NAME=QUANTITY",
        env = "CORACLE_KUBE_RESERVED",
        value_delimiter = ','
    )]
    pub kube_reserved: Vec<String>,
    /// Thresholds at which pods are evicted at once; "" for none [default:
    /// memory.available<100Mi, nodefs.available<5%, nodefs.inodesFree<5%, imagefs.available<5%,
    /// imagefs.inodesFree<5%, pid.available<5%]
    #[arg(
        long,
        value_name = "SIGNAL<QUANTITY",
        env = "CORACLE_EVICTION_HARD",
        value_delimiter = ','
    )]
    pub eviction_hard: Vec<String>,
    /// Thresholds at which pods are evicted after a grace period
    #[arg(
        long,
        value_name = "SIGNAL<QUANTITY",
        env = "CORACLE_EVICTION_SOFT",
        value_delimiter = ','
    )]
    pub eviction_soft: Vec<String>,
    /// How long a soft threshold must be met
    #[arg(
        long,
        value_name = "SIGNAL=DURATION",
        env = "CORACLE_EVICTION_SOFT_GRACE_PERIOD",
        value_delimiter = ','
    )]
    pub eviction_soft_grace_period: Vec<String>,
    /// How far past a threshold eviction goes on
    #[arg(
        long,
        value_name = "SIGNAL=QUANTITY",
        env = "CORACLE_EVICTION_MINIMUM_RECLAIM",
        value_delimiter = ','
    )]
    pub eviction_minimum_reclaim: Vec<String>,
    /// Longest grace of a pod that is evicted for a soft threshold, in seconds; below 0 for the
    /// pod's own [default: 0]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CORACLE_EVICTION_MAX_POD_GRACE_PERIOD",
        allow_hyphen_values = true
    )]
    pub eviction_max_pod_grace_period: Option<String>,
    /// How long a pressure is told after it has ended [default: 5m]
    #[arg(
        long,
        value_name = "DURATION",
        env = "CORACLE_EVICTION_PRESSURE_TRANSITION_PERIOD"
    )]
    pub eviction_pressure_transition_period: Option<String>,
    /// Pods that the node takes [default: 110]
    #[arg(long, value_name = "N", env = "CORACLE_MAX_PODS")]
    pub max_pods: Option<String>,
    /// Percent of the disk in use from which unused images go; 100 for never [default: 85]
    #[arg(long, value_name = "PERCENT", env = "CORACLE_IMAGE_GC_HIGH_THRESHOLD")]
    pub image_gc_high_threshold: Option<String>,
    /// Down to which percent of the disk in use [default: 80]
    #[arg(long, value_name = "PERCENT", env = "CORACLE_IMAGE_GC_LOW_THRESHOLD")]
    pub image_gc_low_threshold: Option<String>,
    /// Age before which an image never goes [default: 2m]
    #[arg(
        long,
        value_name = "DURATION",
        env = "CORACLE_MINIMUM_IMAGE_TTL_DURATION"
    )]
    pub minimum_image_ttl_duration: Option<String>,
    /// How long an image may be unused, however much room there is; 0 for ever [default: 0]
    #[arg(long, value_name = "DURATION", env = "CORACLE_IMAGE_MAXIMUM_GC_AGE")]
    pub image_maximum_gc_age: Option<String>,
    /// Size from which a container's log is set aside [default: 10Mi]
    #[arg(long, value_name = "QUANTITY", env = "CORACLE_CONTAINER_LOG_MAX_SIZE")]
    pub container_log_max_size: Option<String>,
    /// Log files kept of one container, at least 2 [default: 5]
    #[arg(long, value_name = "N", env = "CORACLE_CONTAINER_LOG_MAX_FILES")]
    pub container_log_max_files: Option<String>,
}
