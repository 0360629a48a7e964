//! Watches what remained after a pass, and asks for the next one as soon as it is gone.
//!
//! A watch that fails is not mended: the estimate of the pass brings the next one anyway.

use std::collections::{HashMap, HashSet};
use std::pin::pin;

use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::StreamExt;
use futures::future::join_all;
use kube::api::{WatchEvent, WatchParams};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::pass::Remaining;

/// One task a namespace that is being emptied.
pub(super) struct Watches {
    client: Client,
    queue: WorkQueue<ObjectKey>,
    running: Mutex<HashMap<ObjectKey, JoinHandle<()>>>,
}

impl Watches {
    pub(super) fn new(client: Client, queue: WorkQueue<ObjectKey>) -> Self {
        Self {
            client,
            queue,
            running: Mutex::default(),
        }
    }

    pub(super) fn stop(&self, key: &ObjectKey) {
        if let Some(task) = self.running.lock().remove(key) {
            task.abort();
        }
    }

    /// The key comes again when none of these objects is left.
    pub(super) fn start(&self, key: &ObjectKey, remaining: &[Remaining]) {
        let (client, queue) = (self.client.clone(), self.queue.clone());
        let (wanted, remaining) = (key.clone(), remaining.to_vec());
        let task = tokio::spawn(async move {
            let each = remaining.into_iter();
            let each = each.map(|one| until_gone(client.clone(), &wanted.name, one));
            if join_all(each).await.into_iter().all(|gone| gone) {
                queue.add(wanted);
            }
        });
        let old = self.running.lock().insert(key.clone(), task);
        if let Some(old) = old {
            old.abort();
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        for task in self.running.lock().values() {
            task.abort();
        }
    }
}

/// False if the watch ended before.
async fn until_gone(client: Client, namespace: &str, remaining: Remaining) -> bool {
    let objects = remaining.resource.objects(&client, namespace);
    let mut names: HashSet<String> = remaining.names.into_iter().collect();
    let params = WatchParams::default();
    let events = objects.watch(&params, &remaining.resource_version).await;
    let Ok(events) = events else {
        return false;
    };
    let mut events = pin!(events);
    while let Some(Ok(event)) = events.next().await {
        match event {
            WatchEvent::Deleted(object) => {
                names.remove(object.metadata.name.as_deref().unwrap_or_default());
                if names.is_empty() {
                    return true;
                }
            }
            WatchEvent::Error(_) => return false,
            WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => {}
        }
    }
    false
}
