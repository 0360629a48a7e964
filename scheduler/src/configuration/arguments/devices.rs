//! Arguments of DynamicResources.

use super::{Entry, Unknown, Written, known};
use crate::plugins::registry::Arguments;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::go_duration;
use serde::Deserialize;
use std::time::Duration;

const SECOND: i64 = 1_000_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DynamicResourcesArgs {
    filter_timeout: Option<String>,
    binding_timeout: Option<String>,
    #[serde(flatten)]
    unknown: Unknown,
}

impl Written for DynamicResourcesArgs {
    fn unknown(&self) -> Vec<String> {
        known(&self.unknown)
    }
}

impl Entry<'_> {
    pub(super) fn devices(
        &self,
        arguments: &mut Arguments,
        errors: &mut ErrorList,
    ) -> Result<(), String> {
        let args: DynamicResourcesArgs = self.parsed()?;
        let settled = &mut arguments.devices;
        let at_least = |text: &Option<String>, name: &str, min: i64, why: &str| {
            let Some(text) = text else { return Ok(None) };
            let nanos = go_duration::parse(text)?;
            if nanos < min {
                return Ok(Some(Err(invalid(&self.path.child(name), text, why))));
            }
            Ok(Some(Ok(Duration::from_nanos(nanos.unsigned_abs()))))
        };
        let read = |name: &str, why: String| format!("decoding args for plugin {name}: {why}");
        let filter = at_least(
            &args.filter_timeout,
            "filterTimeout",
            0,
            "must be zero or positive",
        );
        let binding = at_least(
            &args.binding_timeout,
            "bindingTimeout",
            SECOND,
            "must be at least 1 second",
        );
        let wanted = [
            (filter, &mut settled.filter_timeout),
            (binding, &mut settled.binding_timeout),
        ];
        for (found, of) in wanted {
            match found.map_err(|why| read(self.name, why))? {
                None => {}
                Some(Ok(duration)) => *of = duration,
                Some(Err(error)) => errors.push(error),
            }
        }
        Ok(())
    }
}

fn invalid(path: &Path, text: &str, why: &str) -> FieldError {
    FieldError::invalid(path, text, why)
}
