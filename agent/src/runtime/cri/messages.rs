//! Messages of `runtime.v1`, as far as they are used here: fields and their numbers are those of
//! the Container Runtime Interface. What is not listed is passed over when it is read.

use std::collections::HashMap;

/// Requests with where they go and what answers them.
pub trait Call: prost::Message {
    const PATH: &'static str;
    type Answer: prost::Message + Default;
}

macro_rules! calls {
    ($($request:ident -> $answer:ident: $service:literal $method:literal;)*) => {
        $(impl Call for $request {
            const PATH: &'static str = concat!("/runtime.v1.", $service, "/", $method);
            type Answer = $answer;
        })*
    };
}

calls! {
    VersionRequest -> VersionResponse: "RuntimeService" "Version";
    StatusRequest -> StatusResponse: "RuntimeService" "Status";
    RuntimeConfigRequest -> RuntimeConfigResponse: "RuntimeService" "RuntimeConfig";
    UpdateRuntimeConfigRequest -> Nothing: "RuntimeService" "UpdateRuntimeConfig";
    RunPodSandboxRequest -> RunPodSandboxResponse: "RuntimeService" "RunPodSandbox";
    StopPodSandboxRequest -> Nothing: "RuntimeService" "StopPodSandbox";
    RemovePodSandboxRequest -> Nothing: "RuntimeService" "RemovePodSandbox";
    PodSandboxStatusRequest -> PodSandboxStatusResponse: "RuntimeService" "PodSandboxStatus";
    ListPodSandboxRequest -> ListPodSandboxResponse: "RuntimeService" "ListPodSandbox";
    CreateContainerRequest -> CreateContainerResponse: "RuntimeService" "CreateContainer";
    StartContainerRequest -> Nothing: "RuntimeService" "StartContainer";
    StopContainerRequest -> Nothing: "RuntimeService" "StopContainer";
    RemoveContainerRequest -> Nothing: "RuntimeService" "RemoveContainer";
    ListContainersRequest -> ListContainersResponse: "RuntimeService" "ListContainers";
    ContainerStatusRequest -> ContainerStatusResponse: "RuntimeService" "ContainerStatus";
    ContainerStatsRequest -> ContainerStatsResponse: "RuntimeService" "ContainerStats";
    UpdateContainerResourcesRequest -> Nothing: "RuntimeService" "UpdateContainerResources";
    ReopenContainerLogRequest -> Nothing: "RuntimeService" "ReopenContainerLog";
    ExecSyncRequest -> ExecSyncResponse: "RuntimeService" "ExecSync";
    ExecRequest -> UrlResponse: "RuntimeService" "Exec";
    AttachRequest -> UrlResponse: "RuntimeService" "Attach";
    GetEventsRequest -> ContainerEventResponse: "RuntimeService" "GetContainerEvents";
    ListImagesRequest -> ListImagesResponse: "ImageService" "ListImages";
    ImageStatusRequest -> ImageStatusResponse: "ImageService" "ImageStatus";
    PullImageRequest -> PullImageResponse: "ImageService" "PullImage";
    RemoveImageRequest -> Nothing: "ImageService" "RemoveImage";
    ImageFsInfoRequest -> ImageFsInfoResponse: "ImageService" "ImageFsInfo";
}

macro_rules! messages {
    ($($name:ident { $($(#[$field:meta])* $field_name:ident: $kind:ty,)* })*) => {
        $(#[derive(Clone, PartialEq, prost::Message)]
        pub struct $name { $($(#[$field])* pub $field_name: $kind,)* })*
    };
}

/// Of `NamespaceMode`.
pub const NAMESPACE_POD: i32 = 0;
pub const NAMESPACE_CONTAINER: i32 = 1;
pub const NAMESPACE_NODE: i32 = 2;
pub const NAMESPACE_TARGET: i32 = 3;
/// Of `SecurityProfile.ProfileType`.
pub const PROFILE_RUNTIME_DEFAULT: i32 = 0;
pub const PROFILE_UNCONFINED: i32 = 1;
pub const PROFILE_LOCALHOST: i32 = 2;
/// Of `PodSandboxState`.
pub const SANDBOX_READY: i32 = 0;
/// Of `ContainerState`.
pub const CONTAINER_CREATED: i32 = 0;
pub const CONTAINER_RUNNING: i32 = 1;
pub const CONTAINER_EXITED: i32 = 2;
/// Of `SupplementalGroupsPolicy`.
pub const GROUPS_STRICT: i32 = 1;
/// Of `CgroupDriver`.
pub const DRIVER_SYSTEMD: i32 = 0;
/// Of `ContainerEventType`.
pub const EVENT_STARTED: i32 = 1;
pub const EVENT_STOPPED: i32 = 2;

messages! {
    Nothing {}

    VersionRequest {
        #[prost(string, tag = "1")] version: String,
    }
    VersionResponse {
        #[prost(string, tag = "2")] runtime_name: String,
        #[prost(string, tag = "3")] runtime_version: String,
        #[prost(string, tag = "4")] runtime_api_version: String,
    }
    StatusRequest {
        #[prost(bool, tag = "1")] verbose: bool,
    }
    StatusResponse {
        #[prost(message, optional, tag = "1")] status: Option<RuntimeStatus>,
        #[prost(message, repeated, tag = "3")] runtime_handlers: Vec<RuntimeHandler>,
        #[prost(message, optional, tag = "4")] features: Option<RuntimeFeatures>,
    }
    RuntimeStatus {
        #[prost(message, repeated, tag = "1")] conditions: Vec<RuntimeCondition>,
    }
    RuntimeCondition {
        #[prost(string, tag = "1")] kind: String,
        #[prost(bool, tag = "2")] status: bool,
        #[prost(string, tag = "3")] reason: String,
        #[prost(string, tag = "4")] message: String,
    }
    RuntimeHandler {
        #[prost(string, tag = "1")] name: String,
        #[prost(message, optional, tag = "2")] features: Option<RuntimeHandlerFeatures>,
    }
    RuntimeHandlerFeatures {
        #[prost(bool, tag = "1")] recursive_read_only_mounts: bool,
        #[prost(bool, tag = "2")] user_namespaces: bool,
    }
    RuntimeFeatures {
        #[prost(bool, tag = "1")] supplemental_groups_policy: bool,
    }
    RuntimeConfigRequest {}
    RuntimeConfigResponse {
        #[prost(message, optional, tag = "1")] linux: Option<LinuxRuntimeConfiguration>,
    }
    LinuxRuntimeConfiguration {
        #[prost(int32, tag = "1")] cgroup_driver: i32,
    }
    UpdateRuntimeConfigRequest {
        #[prost(message, optional, tag = "1")] runtime_config: Option<RuntimeConfig>,
    }
    RuntimeConfig {
        #[prost(message, optional, tag = "1")] network_config: Option<NetworkConfig>,
    }
    NetworkConfig {
        #[prost(string, tag = "1")] pod_cidr: String,
    }

    PodSandboxMetadata {
        #[prost(string, tag = "1")] name: String,
        #[prost(string, tag = "2")] uid: String,
        #[prost(string, tag = "3")] namespace: String,
        #[prost(uint32, tag = "4")] attempt: u32,
    }
    PortMapping {
        #[prost(int32, tag = "1")] protocol: i32,
        #[prost(int32, tag = "2")] container_port: i32,
        #[prost(int32, tag = "3")] host_port: i32,
        #[prost(string, tag = "4")] host_ip: String,
    }
    PodSandboxConfig {
        #[prost(message, optional, tag = "1")] metadata: Option<PodSandboxMetadata>,
        #[prost(string, tag = "2")] hostname: String,
        #[prost(string, tag = "3")] log_directory: String,
        #[prost(message, repeated, tag = "5")] port_mappings: Vec<PortMapping>,
        #[prost(map = "string, string", tag = "6")] labels: HashMap<String, String>,
        #[prost(map = "string, string", tag = "7")] annotations: HashMap<String, String>,
        #[prost(message, optional, tag = "8")] linux: Option<LinuxPodSandboxConfig>,
    }
    LinuxPodSandboxConfig {
        #[prost(string, tag = "1")] cgroup_parent: String,
        #[prost(message, optional, tag = "2")]
        security_context: Option<LinuxSandboxSecurityContext>,
        #[prost(map = "string, string", tag = "3")] sysctls: HashMap<String, String>,
        #[prost(message, optional, tag = "5")] resources: Option<LinuxContainerResources>,
    }
    LinuxSandboxSecurityContext {
        #[prost(message, optional, tag = "1")] namespace_options: Option<NamespaceOption>,
        #[prost(bool, tag = "6")] privileged: bool,
        #[prost(message, optional, tag = "9")] seccomp: Option<SecurityProfile>,
    }
    NamespaceOption {
        #[prost(int32, tag = "1")] network: i32,
        #[prost(int32, tag = "2")] pid: i32,
        #[prost(int32, tag = "3")] ipc: i32,
        #[prost(string, tag = "4")] target_id: String,
        #[prost(message, optional, tag = "5")] userns_options: Option<UserNamespace>,
    }
    UserNamespace {
        #[prost(int32, tag = "1")] mode: i32,
        #[prost(message, repeated, tag = "2")] uids: Vec<IdMapping>,
        #[prost(message, repeated, tag = "3")] gids: Vec<IdMapping>,
    }
    IdMapping {
        #[prost(uint32, tag = "1")] host_id: u32,
        #[prost(uint32, tag = "2")] container_id: u32,
        #[prost(uint32, tag = "3")] length: u32,
    }
    SecurityProfile {
        #[prost(int32, tag = "1")] profile_type: i32,
        #[prost(string, tag = "2")] localhost_ref: String,
    }
    RunPodSandboxRequest {
        #[prost(message, optional, tag = "1")] config: Option<PodSandboxConfig>,
        #[prost(string, tag = "2")] runtime_handler: String,
    }
    RunPodSandboxResponse {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
    }
    StopPodSandboxRequest {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
    }
    RemovePodSandboxRequest {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
    }
    PodSandboxStatusRequest {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
        #[prost(bool, tag = "2")] verbose: bool,
    }
    PodSandboxStatusResponse {
        #[prost(message, optional, tag = "1")] status: Option<PodSandboxStatus>,
        #[prost(map = "string, string", tag = "2")] info: HashMap<String, String>,
    }
    PodSandboxStatus {
        #[prost(string, tag = "1")] id: String,
        #[prost(message, optional, tag = "2")] metadata: Option<PodSandboxMetadata>,
        #[prost(int32, tag = "3")] state: i32,
        #[prost(int64, tag = "4")] created_at: i64,
        #[prost(message, optional, tag = "5")] network: Option<PodSandboxNetworkStatus>,
        #[prost(message, optional, tag = "6")] linux: Option<LinuxPodSandboxStatus>,
        #[prost(map = "string, string", tag = "7")] labels: HashMap<String, String>,
        #[prost(map = "string, string", tag = "8")] annotations: HashMap<String, String>,
    }
    PodSandboxNetworkStatus {
        #[prost(string, tag = "1")] ip: String,
        #[prost(message, repeated, tag = "2")] additional_ips: Vec<PodIp>,
    }
    PodIp {
        #[prost(string, tag = "1")] ip: String,
    }
    LinuxPodSandboxStatus {
        #[prost(message, optional, tag = "1")] namespaces: Option<Namespace>,
    }
    Namespace {
        #[prost(message, optional, tag = "2")] options: Option<NamespaceOption>,
    }
    PodSandboxFilter {
        #[prost(string, tag = "1")] id: String,
        #[prost(map = "string, string", tag = "3")] label_selector: HashMap<String, String>,
    }
    ListPodSandboxRequest {
        #[prost(message, optional, tag = "1")] filter: Option<PodSandboxFilter>,
    }
    ListPodSandboxResponse {
        #[prost(message, repeated, tag = "1")] items: Vec<PodSandbox>,
    }
    PodSandbox {
        #[prost(string, tag = "1")] id: String,
        #[prost(message, optional, tag = "2")] metadata: Option<PodSandboxMetadata>,
        #[prost(int32, tag = "3")] state: i32,
        #[prost(int64, tag = "4")] created_at: i64,
        #[prost(map = "string, string", tag = "5")] labels: HashMap<String, String>,
        #[prost(map = "string, string", tag = "6")] annotations: HashMap<String, String>,
    }

    ImageSpec {
        #[prost(string, tag = "1")] image: String,
        #[prost(map = "string, string", tag = "2")] annotations: HashMap<String, String>,
        #[prost(string, tag = "18")] user_specified_image: String,
    }
    KeyValue {
        #[prost(string, tag = "1")] key: String,
        #[prost(bytes = "vec", tag = "2")] value: Vec<u8>,
    }
    Int64Value {
        #[prost(int64, tag = "1")] value: i64,
    }
    Uint64Value {
        #[prost(uint64, tag = "1")] value: u64,
    }
    Mount {
        #[prost(string, tag = "1")] container_path: String,
        #[prost(string, tag = "2")] host_path: String,
        #[prost(bool, tag = "3")] readonly: bool,
        #[prost(int32, tag = "5")] propagation: i32,
        #[prost(message, repeated, tag = "6")] uid_mappings: Vec<IdMapping>,
        #[prost(message, repeated, tag = "7")] gid_mappings: Vec<IdMapping>,
        #[prost(bool, tag = "8")] recursive_read_only: bool,
        #[prost(message, optional, tag = "9")] image: Option<ImageSpec>,
        #[prost(string, tag = "10")] image_sub_path: String,
    }
    ContainerMetadata {
        #[prost(string, tag = "1")] name: String,
        #[prost(uint32, tag = "2")] attempt: u32,
    }
    ContainerConfig {
        #[prost(message, optional, tag = "1")] metadata: Option<ContainerMetadata>,
        #[prost(message, optional, tag = "2")] image: Option<ImageSpec>,
        #[prost(string, repeated, tag = "3")] command: Vec<String>,
        #[prost(string, repeated, tag = "4")] args: Vec<String>,
        #[prost(string, tag = "5")] working_dir: String,
        #[prost(message, repeated, tag = "6")] envs: Vec<KeyValue>,
        #[prost(message, repeated, tag = "7")] mounts: Vec<Mount>,
        #[prost(message, repeated, tag = "8")] devices: Vec<Device>,
        #[prost(map = "string, string", tag = "9")] labels: HashMap<String, String>,
        #[prost(map = "string, string", tag = "10")] annotations: HashMap<String, String>,
        #[prost(string, tag = "11")] log_path: String,
        #[prost(bool, tag = "12")] stdin: bool,
        #[prost(bool, tag = "13")] stdin_once: bool,
        #[prost(bool, tag = "14")] tty: bool,
        #[prost(message, optional, tag = "15")] linux: Option<LinuxContainerConfig>,
        #[prost(int32, tag = "18")] stop_signal: i32,
    }
    Device {
        #[prost(string, tag = "1")] container_path: String,
        #[prost(string, tag = "2")] host_path: String,
        #[prost(string, tag = "3")] permissions: String,
    }
    LinuxContainerConfig {
        #[prost(message, optional, tag = "1")] resources: Option<LinuxContainerResources>,
        #[prost(message, optional, tag = "2")]
        security_context: Option<LinuxContainerSecurityContext>,
    }
    LinuxContainerResources {
        #[prost(int64, tag = "1")] cpu_period: i64,
        #[prost(int64, tag = "2")] cpu_quota: i64,
        #[prost(int64, tag = "3")] cpu_shares: i64,
        #[prost(int64, tag = "4")] memory_limit_in_bytes: i64,
        #[prost(int64, tag = "5")] oom_score_adj: i64,
        #[prost(message, repeated, tag = "8")] hugepage_limits: Vec<HugepageLimit>,
        #[prost(int64, tag = "10")] memory_swap_limit_in_bytes: i64,
    }
    HugepageLimit {
        #[prost(string, tag = "1")] page_size: String,
        #[prost(uint64, tag = "2")] limit: u64,
    }
    Capability {
        #[prost(string, repeated, tag = "1")] add_capabilities: Vec<String>,
        #[prost(string, repeated, tag = "2")] drop_capabilities: Vec<String>,
    }
    LinuxContainerSecurityContext {
        #[prost(message, optional, tag = "1")] capabilities: Option<Capability>,
        #[prost(bool, tag = "2")] privileged: bool,
        #[prost(message, optional, tag = "3")] namespace_options: Option<NamespaceOption>,
        #[prost(message, optional, tag = "5")] run_as_user: Option<Int64Value>,
        #[prost(string, tag = "6")] run_as_username: String,
        #[prost(bool, tag = "7")] readonly_rootfs: bool,
        #[prost(int64, repeated, tag = "8")] supplemental_groups: Vec<i64>,
        #[prost(bool, tag = "11")] no_new_privs: bool,
        #[prost(message, optional, tag = "12")] run_as_group: Option<Int64Value>,
        #[prost(string, repeated, tag = "13")] masked_paths: Vec<String>,
        #[prost(string, repeated, tag = "14")] readonly_paths: Vec<String>,
        #[prost(message, optional, tag = "15")] seccomp: Option<SecurityProfile>,
        #[prost(message, optional, tag = "16")] apparmor: Option<SecurityProfile>,
        #[prost(int32, tag = "17")] supplemental_groups_policy: i32,
    }
    CreateContainerRequest {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
        #[prost(message, optional, tag = "2")] config: Option<ContainerConfig>,
        #[prost(message, optional, tag = "3")] sandbox_config: Option<PodSandboxConfig>,
    }
    CreateContainerResponse {
        #[prost(string, tag = "1")] container_id: String,
    }
    StartContainerRequest {
        #[prost(string, tag = "1")] container_id: String,
    }
    StopContainerRequest {
        #[prost(string, tag = "1")] container_id: String,
        #[prost(int64, tag = "2")] timeout: i64,
    }
    RemoveContainerRequest {
        #[prost(string, tag = "1")] container_id: String,
    }
    ContainerFilter {
        #[prost(string, tag = "1")] id: String,
        #[prost(string, tag = "3")] pod_sandbox_id: String,
        #[prost(map = "string, string", tag = "4")] label_selector: HashMap<String, String>,
    }
    ListContainersRequest {
        #[prost(message, optional, tag = "1")] filter: Option<ContainerFilter>,
    }
    ListContainersResponse {
        #[prost(message, repeated, tag = "1")] containers: Vec<Container>,
    }
    Container {
        #[prost(string, tag = "1")] id: String,
        #[prost(string, tag = "2")] pod_sandbox_id: String,
        #[prost(int32, tag = "6")] state: i32,
        #[prost(map = "string, string", tag = "8")] labels: HashMap<String, String>,
    }
    ContainerStatusRequest {
        #[prost(string, tag = "1")] container_id: String,
    }
    ContainerStatusResponse {
        #[prost(message, optional, tag = "1")] status: Option<ContainerStatus>,
    }
    ContainerStatus {
        #[prost(string, tag = "1")] id: String,
        #[prost(message, optional, tag = "2")] metadata: Option<ContainerMetadata>,
        #[prost(int32, tag = "3")] state: i32,
        #[prost(int64, tag = "4")] created_at: i64,
        #[prost(int64, tag = "5")] started_at: i64,
        #[prost(int64, tag = "6")] finished_at: i64,
        #[prost(int32, tag = "7")] exit_code: i32,
        #[prost(message, optional, tag = "8")] image: Option<ImageSpec>,
        #[prost(string, tag = "9")] image_ref: String,
        #[prost(string, tag = "10")] reason: String,
        #[prost(string, tag = "11")] message: String,
        #[prost(map = "string, string", tag = "12")] labels: HashMap<String, String>,
        #[prost(map = "string, string", tag = "13")] annotations: HashMap<String, String>,
        #[prost(string, tag = "15")] log_path: String,
        #[prost(message, optional, tag = "16")] resources: Option<ContainerResources>,
        #[prost(message, optional, tag = "18")] user: Option<ContainerUser>,
    }
    ContainerResources {
        #[prost(message, optional, tag = "1")] linux: Option<LinuxContainerResources>,
    }
    ContainerUser {
        #[prost(message, optional, tag = "1")] linux: Option<LinuxContainerUser>,
    }
    LinuxContainerUser {
        #[prost(int64, tag = "1")] uid: i64,
        #[prost(int64, tag = "2")] gid: i64,
        #[prost(int64, repeated, tag = "3")] supplemental_groups: Vec<i64>,
    }
    ContainerStatsRequest {
        #[prost(string, tag = "1")] container_id: String,
    }
    ContainerStatsResponse {
        #[prost(message, optional, tag = "1")] stats: Option<ContainerStats>,
    }
    ContainerStats {
        #[prost(message, optional, tag = "2")] cpu: Option<CpuUsage>,
        #[prost(message, optional, tag = "3")] memory: Option<MemoryUsage>,
        #[prost(message, optional, tag = "4")] writable_layer: Option<FilesystemUsage>,
    }
    CpuUsage {
        #[prost(message, optional, tag = "2")] usage_core_nano_seconds: Option<Uint64Value>,
    }
    MemoryUsage {
        #[prost(message, optional, tag = "2")] working_set_bytes: Option<Uint64Value>,
        #[prost(message, optional, tag = "4")] usage_bytes: Option<Uint64Value>,
        #[prost(message, optional, tag = "5")] rss_bytes: Option<Uint64Value>,
        #[prost(message, optional, tag = "6")] page_faults: Option<Uint64Value>,
        #[prost(message, optional, tag = "7")] major_page_faults: Option<Uint64Value>,
    }
    FilesystemUsage {
        #[prost(message, optional, tag = "2")] fs_id: Option<FilesystemIdentifier>,
        #[prost(message, optional, tag = "3")] used_bytes: Option<Uint64Value>,
        #[prost(message, optional, tag = "4")] inodes_used: Option<Uint64Value>,
    }
    ImageFsInfoRequest {}
    ImageFsInfoResponse {
        #[prost(message, repeated, tag = "1")] image_filesystems: Vec<FilesystemUsage>,
        #[prost(message, repeated, tag = "2")] container_filesystems: Vec<FilesystemUsage>,
    }
    FilesystemIdentifier {
        #[prost(string, tag = "1")] mountpoint: String,
    }
    UpdateContainerResourcesRequest {
        #[prost(string, tag = "1")] container_id: String,
        #[prost(message, optional, tag = "2")] linux: Option<LinuxContainerResources>,
    }
    ReopenContainerLogRequest {
        #[prost(string, tag = "1")] container_id: String,
    }
    ExecSyncRequest {
        #[prost(string, tag = "1")] container_id: String,
        #[prost(string, repeated, tag = "2")] cmd: Vec<String>,
        #[prost(int64, tag = "3")] timeout: i64,
    }
    ExecSyncResponse {
        #[prost(bytes = "vec", tag = "1")] stdout: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")] stderr: Vec<u8>,
        #[prost(int32, tag = "3")] exit_code: i32,
    }
    ExecRequest {
        #[prost(string, tag = "1")] container_id: String,
        #[prost(string, repeated, tag = "2")] cmd: Vec<String>,
        #[prost(bool, tag = "3")] tty: bool,
        #[prost(bool, tag = "4")] stdin: bool,
        #[prost(bool, tag = "5")] stdout: bool,
        #[prost(bool, tag = "6")] stderr: bool,
    }
    AttachRequest {
        #[prost(string, tag = "1")] container_id: String,
        #[prost(bool, tag = "2")] stdin: bool,
        #[prost(bool, tag = "3")] tty: bool,
        #[prost(bool, tag = "4")] stdout: bool,
        #[prost(bool, tag = "5")] stderr: bool,
    }
    UrlResponse {
        #[prost(string, tag = "1")] url: String,
    }
    GetEventsRequest {}
    ContainerEventResponse {
        #[prost(string, tag = "1")] container_id: String,
        #[prost(int32, tag = "2")] container_event_type: i32,
        #[prost(message, optional, tag = "4")] pod_sandbox_status: Option<PodSandboxStatus>,
        #[prost(message, repeated, tag = "5")] containers_statuses: Vec<ContainerStatus>,
    }

    ListImagesRequest {}
    ListImagesResponse {
        #[prost(message, repeated, tag = "1")] images: Vec<Image>,
    }
    Image {
        #[prost(string, tag = "1")] id: String,
        #[prost(string, repeated, tag = "2")] repo_tags: Vec<String>,
        #[prost(string, repeated, tag = "3")] repo_digests: Vec<String>,
        #[prost(uint64, tag = "4")] size: u64,
        #[prost(message, optional, tag = "5")] uid: Option<Int64Value>,
        #[prost(string, tag = "6")] username: String,
        #[prost(bool, tag = "8")] pinned: bool,
    }
    ImageStatusRequest {
        #[prost(message, optional, tag = "1")] image: Option<ImageSpec>,
    }
    ImageStatusResponse {
        #[prost(message, optional, tag = "1")] image: Option<Image>,
    }
    PullImageRequest {
        #[prost(message, optional, tag = "1")] image: Option<ImageSpec>,
        #[prost(message, optional, tag = "2")] auth: Option<AuthConfig>,
    }
    PullImageResponse {
        #[prost(string, tag = "1")] image_ref: String,
    }
    RemoveImageRequest {
        #[prost(message, optional, tag = "1")] image: Option<ImageSpec>,
    }
}

/// Is not shown.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct AuthConfig {
    #[prost(string, tag = "1")]
    pub username: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

impl std::fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthConfig").finish_non_exhaustive()
    }
}
