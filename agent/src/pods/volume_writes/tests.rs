//! Turns are taken, also with work that nobody waits for any more.

use super::VolumeWrites;
use std::sync::{Arc, mpsc};

#[tokio::test]
async fn work_whose_task_was_aborted_is_waited_for() {
    let writes = Arc::new(VolumeWrites::default());
    let directory = tempfile::tempdir().unwrap();
    let pod = directory.path().join("u");
    std::fs::create_dir(&pod).unwrap();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = mpsc::sync_channel::<()>(1);
    let writer = tokio::spawn({
        let (writes, file) = (writes.clone(), pod.join("secret"));
        async move {
            let work = move || {
                begun.send(()).unwrap();
                may_go_on.recv().unwrap();
                std::fs::write(file, "s").unwrap();
            };
            writes.run("u", work).await.unwrap();
        }
    });
    has_begun.await.unwrap();
    writer.abort();
    assert!(writer.await.unwrap_err().is_cancelled());
    let mut removal = std::pin::pin!(writes.run("u", {
        let pod = pod.clone();
        move || std::fs::remove_dir_all(pod).unwrap()
    }));
    assert!(futures::poll!(removal.as_mut()).is_pending());
    assert_eq!(writes.run("other", || 1).await.unwrap(), 1);
    assert!(pod.exists(), "the writer comes first");
    go_on.send(()).unwrap();
    removal.await.unwrap();
    assert!(!pod.exists());
}

#[tokio::test]
async fn nothing_is_kept_of_pods_that_nobody_works_on() {
    let writes = VolumeWrites::default();
    for uid in ["a", "b", "c"] {
        writes.run(uid, || ()).await.unwrap();
    }
    assert_eq!(writes.0.lock().len(), 1);
    let panicked = writes.run("c", || panic!("in a test")).await;
    assert!(panicked.is_err());
    assert_eq!(writes.run("c", || 1).await.unwrap(), 1);
}
