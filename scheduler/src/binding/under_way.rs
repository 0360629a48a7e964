//! Bindings under way, and the end of those that wait still.
//!
//! Invariant: a binding is called off or sealed, never both; the end of one leaves alone a later
//! one of the same pod.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub const PREEMPTED: &str = "preempted";

/// By uid of the pod; sealed ones are not here.
#[derive(Clone, Debug, Default)]
pub struct UnderWay(Arc<Mutex<HashMap<String, Arc<CancellationToken>>>>);

impl UnderWay {
    pub fn begin(&self, uid: &str) -> Revocable {
        let called_off = Arc::new(CancellationToken::new());
        let known = Arc::clone(&called_off);
        self.0.lock().insert(uid.to_owned(), known);
        Revocable {
            under_way: self.clone(),
            uid: uid.to_owned(),
            called_off,
        }
    }

    /// True when the binding of the pod ends without it being bound.
    pub fn call_off(&self, uid: &str) -> bool {
        let known = self.0.lock();
        let called_off = known.get(uid).map(|known| known.cancel());
        called_off.is_some()
    }
}

/// A binding that can be called off until it is sealed.
#[derive(Debug)]
pub struct Revocable {
    under_way: UnderWay,
    uid: String,
    called_off: Arc<CancellationToken>,
}

impl Revocable {
    pub fn called_off(&self) -> &CancellationToken {
        &self.called_off
    }

    /// From here on the pod is bound; or why it is not.
    pub fn seal(&self) -> Result<(), &'static str> {
        self.hide();
        // Nobody finds it any more, so this is the last word.
        if self.called_off.is_cancelled() {
            return Err(PREEMPTED);
        }
        Ok(())
    }

    fn hide(&self) {
        let mut known = self.under_way.0.lock();
        let mine = known.get(&self.uid);
        if mine.is_some_and(|mine| Arc::ptr_eq(mine, &self.called_off)) {
            known.remove(&self.uid);
        }
    }
}

impl Drop for Revocable {
    fn drop(&mut self) {
        self.hide();
    }
}
