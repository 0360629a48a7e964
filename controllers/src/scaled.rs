//! Numbers that may be given as a percentage. Pure.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// A number as it is, a percentage of `total`.
pub(crate) fn scaled(value: &IntOrString, total: i32, rounding: Rounding) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|digits| digits.parse::<i64>().ok());
            let hundredths = percent.unwrap_or(0).saturating_mul(i64::from(total));
            let scaled = match rounding {
                Rounding::Up => hundredths.saturating_add(99).div_euclid(100),
                Rounding::Down => hundredths.div_euclid(100),
            };
            i32::try_from(scaled).unwrap_or(i32::MAX)
        }
    }
}
