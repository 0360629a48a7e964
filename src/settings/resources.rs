//! What of a machine is for pods: text in, checked values or a `BadSetting` out.

use super::{BadSetting, parse};
use crate::cli::ResourceArgs;
use coracle_agent::collect::ImagePolicy;
use coracle_agent::pressure::{self, Words};
use coracle_agent::{LogBounds, Resources};
use coracle_api::amounts::Amounts;
use coracle_api::quantity::Quantity;
use std::collections::BTreeMap;

/// What can be kept from pods.
const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

pub fn resources(args: &ResourceArgs) -> Result<Resources, BadSetting> {
    let default = Resources::default();
    Ok(Resources {
        system_reserved: reserved("system-reserved", &args.system_reserved)?,
        kube_reserved: reserved("kube-reserved", &args.kube_reserved)?,
        eviction: eviction(args)?,
        pods_max: number("max-pods", args.max_pods.as_deref(), 0, default.pods_max)?,
        images: images(args)?,
        logs: logs(args)?,
    })
}

/// A later value for a name takes the place of an earlier one.
fn pairs(
    flag: &'static str,
    sign: char,
    expected: &str,
    given: &[String],
) -> Result<BTreeMap<String, String>, BadSetting> {
    let given = given.iter().filter(|text| !text.is_empty());
    given
        .map(|text| {
            let pair = text.split_once(sign);
            let (name, value) = pair.ok_or_else(|| BadSetting::new(flag, text, expected))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect()
}

fn reserved(flag: &'static str, given: &[String]) -> Result<Amounts, BadSetting> {
    let form = "must be NAME=QUANTITY, such as memory=256Mi";
    let mut all = Amounts::default();
    for (name, text) in pairs(flag, '=', form, given)? {
        let bad = |expected: String| BadSetting::new(flag, &format!("{name}={text}"), expected);
        if !RESERVABLE.contains(&name.as_str()) {
            let names = RESERVABLE.join(", ");
            return Err(bad(format!("the name must be one of {names}")));
        }
        let amount = Quantity::parse(&text).map_err(|_| bad(form.to_owned()))?;
        if amount.is_negative() {
            return Err(bad("must not be below 0".to_owned()));
        }
        all.set(name, amount);
    }
    Ok(all)
}

fn eviction(args: &ResourceArgs) -> Result<pressure::Settings, BadSetting> {
    let default = pressure::Settings::default();
    let thresholds = |flag, given| {
        let form = "must be SIGNAL<QUANTITY, such as memory.available<100Mi";
        pairs(flag, '<', form, given)
    };
    let hard = match args.eviction_hard.as_slice() {
        [] => pressure::pairs(&pressure::HARD_DEFAULT),
        given => thresholds("eviction-hard", given)?,
    };
    let words = Words {
        hard,
        soft: thresholds("eviction-soft", &args.eviction_soft)?,
        soft_grace: pairs(
            "eviction-soft-grace-period",
            '=',
            "must be SIGNAL=DURATION, such as memory.available=1m30s",
            &args.eviction_soft_grace_period,
        )?,
        minimum_reclaim: pairs(
            "eviction-minimum-reclaim",
            '=',
            "must be SIGNAL=QUANTITY, such as nodefs.available=500Mi",
            &args.eviction_minimum_reclaim,
        )?,
    };
    let thresholds = pressure::thresholds(&words)
        .map_err(|bad| BadSetting::new(bad.flag, &bad.value, bad.expected))?;
    let flag = "eviction-pressure-transition-period";
    let period = args.eviction_pressure_transition_period.as_deref();
    let period = period.map(|text| parse::duration(flag, text)).transpose()?;
    let flag = "eviction-max-pod-grace-period";
    let grace = args.eviction_max_pod_grace_period.as_deref();
    let seconds = |text: &str| {
        text.parse::<i32>()
            .map_err(|_| BadSetting::new(flag, text, "must be a number of seconds"))
    };
    let grace = grace.map(seconds).transpose()?;
    Ok(pressure::Settings {
        thresholds,
        max_pod_grace_seconds: grace.map_or(default.max_pod_grace_seconds, i64::from),
        transition: period.unwrap_or(default.transition),
    })
}

fn number(
    flag: &'static str,
    given: Option<&str>,
    least: u32,
    default: u32,
) -> Result<u32, BadSetting> {
    let Some(text) = given else {
        return Ok(default);
    };
    let expected = || format!("must be a number of at least {least}");
    let parsed = text.parse().ok().filter(|number| *number >= least);
    parsed.ok_or_else(|| BadSetting::new(flag, text, expected()))
}

fn percent(flag: &'static str, given: Option<&str>, default: u8) -> Result<u8, BadSetting> {
    let Some(text) = given else {
        return Ok(default);
    };
    let parsed = text.parse().ok().filter(|percent| *percent <= 100);
    let expected = "must be a whole number from 0 to 100";
    parsed.ok_or_else(|| BadSetting::new(flag, text, expected))
}

fn images(args: &ResourceArgs) -> Result<ImagePolicy, BadSetting> {
    let default = ImagePolicy::default();
    let duration = |flag, given: &Option<String>, default| {
        let given = given.as_deref().map(|text| parse::duration(flag, text));
        given.transpose().map(|given| given.unwrap_or(default))
    };
    let high = args.image_gc_high_threshold.as_deref();
    let high_percent = percent("image-gc-high-threshold", high, default.high_percent)?;
    let (flag, low) = (
        "image-gc-low-threshold",
        args.image_gc_low_threshold.as_deref(),
    );
    let low_percent = percent(flag, low, default.low_percent)?;
    if low_percent >= high_percent {
        let expected = format!("must be below --image-gc-high-threshold, which is {high_percent}");
        return Err(BadSetting::new(flag, &low_percent.to_string(), expected));
    }
    let ttl = &args.minimum_image_ttl_duration;
    let age_min = duration("minimum-image-ttl-duration", ttl, default.age_min)?;
    let (flag, age) = ("image-maximum-gc-age", &args.image_maximum_gc_age);
    let unused_max = duration(flag, age, default.unused_max)?;
    if !unused_max.is_zero() && unused_max <= age_min {
        let expected = "must be longer than --minimum-image-ttl-duration";
        let text = age.as_deref().unwrap_or_default();
        return Err(BadSetting::new(flag, text, expected));
    }
    Ok(ImagePolicy {
        high_percent,
        low_percent,
        age_min,
        unused_max,
    })
}

fn logs(args: &ResourceArgs) -> Result<LogBounds, BadSetting> {
    let default = Resources::default().logs;
    let bytes_max = match args.container_log_max_size.as_deref() {
        None => default.bytes_max,
        Some(text) => {
            let size = Quantity::parse(text).ok();
            let bytes = size.and_then(|size| u64::try_from(size.value()).ok());
            let expected = "must be a quantity above 0, such as 10Mi";
            let bad = || BadSetting::new("container-log-max-size", text, expected);
            bytes.filter(|bytes| *bytes > 0).ok_or_else(bad)?
        }
    };
    let files = args.container_log_max_files.as_deref();
    let files = number("container-log-max-files", files, 2, 5)?;
    Ok(LogBounds {
        bytes_max,
        files_max: usize::try_from(files).unwrap_or(usize::MAX),
    })
}

#[cfg(test)]
mod tests;
