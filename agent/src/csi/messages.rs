//! Messages of the Container Storage Interface and of plugins' registration, as far as they are
//! used here: fields and their numbers are those of `csi.v1` and `pluginregistration`.

use std::collections::BTreeMap;

/// Of `NodeServiceCapability.RPC.Type`.
pub const STAGE_UNSTAGE_VOLUME: i32 = 1;
pub const GET_VOLUME_STATS: i32 = 2;
pub const EXPAND_VOLUME: i32 = 3;
pub const SINGLE_NODE_MULTI_WRITER: i32 = 5;
pub const VOLUME_MOUNT_GROUP: i32 = 6;
/// Of `VolumeUsage.Unit`.
pub const UNIT_BYTES: i32 = 1;
pub const UNIT_INODES: i32 = 2;

macro_rules! messages {
    ($($name:ident { $($(#[$field:meta])* $field_name:ident: $kind:ty,)* })*) => {
        $(#[derive(Clone, PartialEq, prost::Message)]
        pub struct $name { $($(#[$field])* pub $field_name: $kind,)* })*
    };
}

messages! {
    Nothing {}

    PluginInfo {
        #[prost(string, tag = "1")] kind: String,
        #[prost(string, tag = "2")] name: String,
        #[prost(string, tag = "3")] endpoint: String,
        #[prost(string, repeated, tag = "4")] supported_versions: Vec<String>,
    }
    RegistrationStatus {
        #[prost(bool, tag = "1")] plugin_registered: bool,
        #[prost(string, tag = "2")] error: String,
    }

    NodeGetInfoResponse {
        #[prost(string, tag = "1")] node_id: String,
        #[prost(int64, tag = "2")] max_volumes_per_node: i64,
        #[prost(message, optional, tag = "3")] accessible_topology: Option<Topology>,
    }
    Topology {
        #[prost(btree_map = "string, string", tag = "1")] segments: BTreeMap<String, String>,
    }

    NodeGetCapabilitiesResponse {
        #[prost(message, repeated, tag = "1")] capabilities: Vec<NodeServiceCapability>,
    }
    NodeServiceCapability {
        #[prost(message, optional, tag = "1")] rpc: Option<Rpc>,
    }
    Rpc {
        #[prost(int32, tag = "1")] kind: i32,
    }

    VolumeCapability {
        #[prost(message, optional, tag = "1")] block: Option<Nothing>,
        #[prost(message, optional, tag = "2")] mount: Option<MountVolume>,
        #[prost(message, optional, tag = "3")] access_mode: Option<AccessMode>,
    }
    MountVolume {
        #[prost(string, tag = "1")] fs_type: String,
        #[prost(string, repeated, tag = "2")] mount_flags: Vec<String>,
        #[prost(string, tag = "3")] volume_mount_group: String,
    }
    AccessMode {
        #[prost(int32, tag = "1")] mode: i32,
    }

    NodeStageVolumeRequest {
        #[prost(string, tag = "1")] volume_id: String,
        #[prost(btree_map = "string, string", tag = "2")]
        publish_context: BTreeMap<String, String>,
        #[prost(string, tag = "3")] staging_target_path: String,
        #[prost(message, optional, tag = "4")] volume_capability: Option<VolumeCapability>,
        #[prost(btree_map = "string, string", tag = "5")] secrets: BTreeMap<String, String>,
        #[prost(btree_map = "string, string", tag = "6")]
        volume_context: BTreeMap<String, String>,
    }
    NodeUnstageVolumeRequest {
        #[prost(string, tag = "1")] volume_id: String,
        #[prost(string, tag = "2")] staging_target_path: String,
    }
    NodePublishVolumeRequest {
        #[prost(string, tag = "1")] volume_id: String,
        #[prost(btree_map = "string, string", tag = "2")]
        publish_context: BTreeMap<String, String>,
        #[prost(string, tag = "3")] staging_target_path: String,
        #[prost(string, tag = "4")] target_path: String,
        #[prost(message, optional, tag = "5")] volume_capability: Option<VolumeCapability>,
        #[prost(bool, tag = "6")] readonly: bool,
        #[prost(btree_map = "string, string", tag = "7")] secrets: BTreeMap<String, String>,
        #[prost(btree_map = "string, string", tag = "8")]
        volume_context: BTreeMap<String, String>,
    }
    NodeUnpublishVolumeRequest {
        #[prost(string, tag = "1")] volume_id: String,
        #[prost(string, tag = "2")] target_path: String,
    }

    NodeGetVolumeStatsRequest {
        #[prost(string, tag = "1")] volume_id: String,
        #[prost(string, tag = "2")] volume_path: String,
    }
    NodeGetVolumeStatsResponse {
        #[prost(message, repeated, tag = "1")] usage: Vec<VolumeUsage>,
    }
    VolumeUsage {
        #[prost(int64, tag = "1")] available: i64,
        #[prost(int64, tag = "2")] total: i64,
        #[prost(int64, tag = "3")] used: i64,
        #[prost(int32, tag = "4")] unit: i32,
    }

    NodeExpandVolumeRequest {
        #[prost(string, tag = "1")] volume_id: String,
        #[prost(string, tag = "2")] volume_path: String,
        #[prost(message, optional, tag = "3")] capacity_range: Option<CapacityRange>,
        #[prost(string, tag = "4")] staging_target_path: String,
        #[prost(message, optional, tag = "5")] volume_capability: Option<VolumeCapability>,
        #[prost(btree_map = "string, string", tag = "6")] secrets: BTreeMap<String, String>,
    }
    NodeExpandVolumeResponse {
        #[prost(int64, tag = "1")] capacity_bytes: i64,
    }
    CapacityRange {
        #[prost(int64, tag = "1")] required_bytes: i64,
    }
}
