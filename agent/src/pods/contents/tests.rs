//! Volumes of one pod do not wait for those of another.

use super::Rounds;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

#[tokio::test]
async fn a_pod_whose_driver_is_slow_holds_up_no_other() {
    let (tasks, mut rounds) = (TaskTracker::new(), Rounds::default());
    let (answer, answered) = oneshot::channel::<()>();
    let begin = |rounds: &mut Rounds, uid: &str, waits: Option<oneshot::Receiver<()>>| {
        rounds.begin(&tasks, uid.to_owned(), async {
            if let Some(waits) = waits {
                waits.await.unwrap();
            }
        });
    };
    begin(&mut rounds, "slow", Some(answered));
    begin(&mut rounds, "other", None);
    while rounds.is_on("other") {
        tokio::task::yield_now().await;
    }
    assert!(rounds.is_on("slow"), "its next round waits for this one");
    answer.send(()).unwrap();
    tasks.close();
    tasks.wait().await;
    assert!(!rounds.is_on("slow"));
}
