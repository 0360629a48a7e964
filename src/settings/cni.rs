//! Where network plugins and their configuration are.

use super::{BadSetting, parse};
use crate::cli::AgentArgs;
use coracle_agent::CniSettings;

const CONFIGURATION: &str = "cni-conf-dir";
const PLUGINS: &str = "cni-bin-dir";
const TIMEOUT: &str = "cni-timeout";

pub fn cni(args: &AgentArgs) -> Result<CniSettings, BadSetting> {
    let mut settings = CniSettings::default();
    if let Some(text) = &args.cni_conf_dir {
        settings.configurations = parse::directory(CONFIGURATION, Some(text))?;
    }
    if !args.cni_bin_dir.is_empty() {
        let each = args.cni_bin_dir.iter().map(|text| {
            if text.contains(':') {
                let expected = "must have no colon: plugins are given a list with colons between";
                return Err(BadSetting::new(PLUGINS, text, expected));
            }
            parse::directory(PLUGINS, Some(text))
        });
        settings.plugins = each.collect::<Result<_, _>>()?;
    }
    if let Some(text) = &args.cni_timeout {
        settings.time_max = parse::duration(TIMEOUT, text)?;
        if settings.time_max.is_zero() {
            let expected = "must be more than 0: no plugin ends at once";
            return Err(BadSetting::new(TIMEOUT, text, expected));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
