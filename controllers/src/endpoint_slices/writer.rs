//! Writes slices of one namespace, and notes in the tracker what the watch is about to show.
//!
//! Each of the two loops words its own errors.

use coracle_client::{Client, patch};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::PostParams;

use super::Tracker;
use crate::refusal;

pub(crate) struct Writer<'a> {
    slices: Api<EndpointSlice>,
    tracker: &'a Tracker,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(client: &Client, namespace: &str, tracker: &'a Tracker) -> Self {
        let slices = Api::namespaced(client.clone(), namespace);
        Self { slices, tracker }
    }

    /// False when the namespace ends, in which nothing is made any more.
    pub(crate) async fn create(&self, slice: &EndpointSlice) -> Result<bool, kube::Error> {
        match self.slices.create(&PostParams::default(), slice).await {
            Ok(created) => self.tracker.wrote(&created),
            Err(error) if refusal::is_namespace_terminating(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    pub(crate) async fn update(&self, slice: &EndpointSlice) -> Result<(), kube::Error> {
        let updated = patch::replace(&self.slices, slice).await?;
        self.tracker.wrote(&updated);
        Ok(())
    }

    /// One that is gone already is as good as deleted.
    pub(crate) async fn delete(&self, slice: &EndpointSlice) -> Result<(), kube::Error> {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        self.tracker.deleting(slice);
        let deleted = self
            .slices
            .delete(name, &patch::delete_exactly(slice))
            .await;
        match deleted {
            Err(error) if !refusal::is_not_found(&error) => {
                self.tracker.wrote(slice);
                Err(error)
            }
            _ => Ok(()),
        }
    }
}
