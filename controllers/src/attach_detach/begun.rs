//! Attachments that are being made and that the copy of the server does not show yet. Pure.

use std::collections::HashMap;
use std::time::Duration;

use coracle_client::clock::Instant;
use k8s_openapi::api::storage::v1::VolumeAttachment;

/// What is not shown by then was never made, or is gone again.
const BEGUN_MAX: Duration = Duration::from_secs(60);

/// By volume: the name of the attachment, and since when. Of volumes that may be on one node only.
#[derive(Debug, Default)]
pub(super) struct Begun(HashMap<String, (String, Instant)>);

impl Begun {
    /// False when another attachment of the volume is being made.
    pub(super) fn begin(&mut self, attachment: &VolumeAttachment, now: Instant) -> bool {
        self.0
            .retain(|_, (_, since)| now.duration_since(*since) < BEGUN_MAX);
        let (volume, name) = names(attachment);
        if self.0.get(volume).is_some_and(|(other, _)| other != name) {
            return false;
        }
        self.0.insert(volume.to_owned(), (name.to_owned(), now));
        true
    }

    /// It is shown, or was not made.
    pub(super) fn end(&mut self, attachment: &VolumeAttachment) {
        let (volume, name) = names(attachment);
        if self.0.get(volume).is_some_and(|(known, _)| known == name) {
            self.0.remove(volume);
        }
    }
}

fn names(attachment: &VolumeAttachment) -> (&str, &str) {
    let volume = attachment.spec.source.persistent_volume_name.as_deref();
    let name = attachment.metadata.name.as_deref();
    (volume.unwrap_or_default(), name.unwrap_or_default())
}
