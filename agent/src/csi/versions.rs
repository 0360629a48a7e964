//! Which versions of the interface are spoken: 1.x. Pure; words are upstream's.

use std::fmt;

/// Numbers as a driver gave them, such as `1.0.0`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version(Vec<u64>);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

impl Version {
    /// At least two numbers; what follows them is passed over.
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("could not parse {text:?} as version");
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(|one: char| !one.is_ascii_digit() && one != '.');
        let numbers = text[..end.unwrap_or(text.len())].trim_end_matches('.');
        let numbers: Result<Vec<u64>, _> = numbers.split('.').map(str::parse).collect();
        let numbers = numbers.map_err(|_| bad())?;
        if numbers.len() < 2 {
            return Err(bad());
        }
        Ok(Self(numbers))
    }
}

/// The highest version that both sides speak.
pub fn highest(versions: &[String]) -> Result<Version, String> {
    let (mut best, mut error) = (None, "<nil>".to_owned());
    for version in versions.iter().rev() {
        match Version::parse(version) {
            Ok(version) if version.0[0] > 1 => {}
            Ok(version) => best = best.max(Some(version)),
            Err(why) => error = why,
        }
    }
    let Some(best) = best else {
        let versions = versions.join(" ");
        return Err(format!(
            "could not find a highest supported version from versions ([{versions}]) reported: \
             {error}"
        ));
    };
    if best.0[0] != 1 {
        return Err(format!(
            "highest supported version reported is {best}, must be v1.x"
        ));
    }
    Ok(best)
}

/// Whether a driver may register; `known` is the version of one of that name that is there.
/// `caller` is the step that asks.
pub fn check(
    caller: &str,
    driver: &str,
    versions: &[String],
    known: Option<&Version>,
) -> Result<Version, String> {
    let failed = |why: String| {
        super::said(format_args!(
            "{caller} for CSI driver {driver:?} failed. {why}"
        ))
    };
    if versions.is_empty() {
        let why = "Plugin returned an empty list for supported versions";
        return Err(failed(why.to_owned()));
    }
    let highest = highest(versions).map_err(|error| {
        let quoted: Vec<String> = versions.iter().map(|one| format!("{one:?}")).collect();
        let quoted = quoted.join(" ");
        failed(format!(
            "None of the versions specified [{quoted}] are supported. err={error}"
        ))
    })?;
    match known {
        Some(known) if *known >= highest => Err(failed(format!(
            "Another driver with the same name is already registered with a higher supported \
             version: \"{known}\""
        ))),
        _ => Ok(highest),
    }
}

#[cfg(test)]
mod tests;
