//! The validating webhooks: all that a request concerns, asked at once.

use super::form::{Form, Shown};
use super::hook::Hook;
use super::select;
use super::{Does, Webhooks, annotate};
use crate::admission::Attributes;
use crate::audit::policy::Level;
use crate::custom::convert::Converter;
use coracle_api::object::Object;
use coracle_api::status::Status;
use futures::future::join_all;
use std::sync::Arc;
use tokio::time::Instant;

/// The forms that were asked for so far, each shared by the webhooks that see it.
#[derive(Default)]
struct AllShown(Vec<Arc<Shown>>);

impl AllShown {
    async fn get(
        &mut self,
        converter: &Converter,
        form: Form,
        asked: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<Arc<Shown>, Status> {
        if let Some(known) = self.0.iter().find(|known| known.form == form) {
            return Ok(Arc::clone(known));
        }
        let shown = Arc::new(Shown::of(converter, form, asked, object).await?);
        self.0.push(Arc::clone(&shown));
        Ok(shown)
    }
}

impl Webhooks {
    /// Asks all that the request concerns. Of several that say no the first in order is told.
    pub async fn judge(
        &self,
        object: Option<&Object>,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let mut all = AllShown::default();
        let mut relevant = Vec::new();
        for hook in self.lists.all(Does::Judge).iter() {
            let Some(form) = select::form(self.view.as_ref(), hook, asked, object)? else {
                continue;
            };
            let shown = all.get(&self.converter, form, asked, object).await?;
            if select::meets_conditions(&self.authorizer, hook, asked, &shown)? {
                relevant.push((Arc::clone(hook), shown));
            }
        }
        let asking = relevant
            .iter()
            .enumerate()
            .map(|(index, (hook, shown))| self.ask_judge(index, hook, shown, asked));
        join_all(asking).await.into_iter().collect()
    }

    async fn ask_judge(
        &self,
        index: usize,
        hook: &Hook,
        shown: &Shown,
        asked: &Attributes<'_>,
    ) -> Result<(), Status> {
        let begun = Instant::now();
        let called = self.call(Does::Judge, hook, asked, shown).await;
        let settled = self.settle(Does::Judge, hook, asked, begun, called)?;
        if settled.is_none() {
            let key =
                format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}");
            annotate(asked, Level::Metadata, key, &hook.name);
        }
        Ok(())
    }
}
