//! Calls of a driver's Node service.

use super::messages::*;
use crate::grpc::{Channel, Code, Status};
use prost::Message;
use std::sync::Arc;
use std::time::Duration;

/// Upstream's; an operation that takes longer is asked for again.
const WITHIN: Duration = Duration::from_secs(120);

/// What a driver's Node service can do.
#[derive(Clone, Debug, Default)]
pub struct Capabilities(Vec<i32>);

impl Capabilities {
    pub fn of(answer: NodeGetCapabilitiesResponse) -> Self {
        let all = answer.capabilities.into_iter();
        Self(all.filter_map(|one| Some(one.rpc?.kind)).collect())
    }

    pub fn has(&self, one: i32) -> bool {
        self.0.contains(&one)
    }
}

/// Cheap to clone; clones share a connection.
#[derive(Clone, Debug)]
pub struct Node(Arc<Channel>);

impl Node {
    pub fn new(channel: Arc<Channel>) -> Self {
        Self(channel)
    }

    async fn call<A: Message + Default>(
        &self,
        method: &str,
        question: &impl Message,
    ) -> Result<A, Status> {
        let path = format!("/csi.v1.Node/{method}");
        self.0.unary(&path, question, WITHIN).await
    }

    pub async fn info(&self) -> Result<NodeGetInfoResponse, Status> {
        self.call("NodeGetInfo", &Nothing {}).await
    }

    pub async fn capabilities(&self) -> Result<Capabilities, Status> {
        let answer = self.call("NodeGetCapabilities", &Nothing {}).await;
        answer.map(Capabilities::of)
    }

    pub async fn stage(&self, question: &NodeStageVolumeRequest) -> Result<(), Status> {
        self.call("NodeStageVolume", question).await.map(nothing)
    }

    pub async fn unstage(&self, volume: &str, staged: &str) -> Result<(), Status> {
        let question = NodeUnstageVolumeRequest {
            volume_id: volume.to_owned(),
            staging_target_path: staged.to_owned(),
        };
        self.call("NodeUnstageVolume", &question).await.map(nothing)
    }

    pub async fn publish(&self, question: &NodePublishVolumeRequest) -> Result<(), Status> {
        self.call("NodePublishVolume", question).await.map(nothing)
    }

    pub async fn unpublish(&self, volume: &str, target: &str) -> Result<(), Status> {
        let question = NodeUnpublishVolumeRequest {
            volume_id: volume.to_owned(),
            target_path: target.to_owned(),
        };
        self.call("NodeUnpublishVolume", &question)
            .await
            .map(nothing)
    }

    pub async fn stats(&self, volume: &str, path: &str) -> Result<Vec<VolumeUsage>, Status> {
        let question = NodeGetVolumeStatsRequest {
            volume_id: volume.to_owned(),
            volume_path: path.to_owned(),
        };
        let answer: NodeGetVolumeStatsResponse = self.call("NodeGetVolumeStats", &question).await?;
        Ok(answer.usage)
    }

    pub async fn expand(&self, question: &NodeExpandVolumeRequest) -> Result<(), Status> {
        let answer: Result<NodeExpandVolumeResponse, Status> =
            self.call("NodeExpandVolume", question).await;
        answer.map(drop)
    }
}

fn nothing(_: Nothing) {}

/// Whether such an end means that nothing is under way: the operation did not begin, or failed.
pub fn is_final(status: &Status) -> bool {
    let may_go_on = [
        Code::CANCELED,
        Code::DEADLINE_EXCEEDED,
        Code::UNAVAILABLE,
        Code::RESOURCE_EXHAUSTED,
        Code::ABORTED,
    ];
    !may_go_on.contains(&status.code)
}

/// Of `VolumeCapability.AccessMode.Mode`, for a claim's access mode.
pub fn access_mode(mode: &str, capabilities: &Capabilities) -> i32 {
    let tells_writers_apart = capabilities.has(SINGLE_NODE_MULTI_WRITER);
    match (mode, tells_writers_apart) {
        ("ReadWriteOnce" | "ReadWriteOncePod", false) => 1,
        ("ReadOnlyMany", _) => 3,
        ("ReadWriteMany", _) => 5,
        ("ReadWriteOncePod", true) => 6,
        ("ReadWriteOnce", true) => 7,
        _ => 0,
    }
}
