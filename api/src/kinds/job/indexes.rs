//! Indexes of a job as text: `1,3-5,7`.

/// How many indexes there are; the error is the text that upstream gives.
pub fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut last = None;
    let mut total = 0;
    for interval in intervals(text) {
        let (low, high) = interval_of(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= low) {
            return Err(order(last, low));
        }
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

fn intervals(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|_| !text.is_empty())
}

fn order(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

fn interval_of(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = text.split('-').collect();
    let index = |text: &str| match text.parse::<i64>() {
        Ok(index) if index < completions => Ok(index),
        Ok(_) => Err(format!("too large index: {text:?}")),
        Err(_) => Err(format!(
            "cannot convert string to integer for index: {text:?}"
        )),
    };
    match parts.as_slice() {
        [one] => index(one).map(|index| (index, index)),
        [low, high] => {
            let (low, high) = (index(low)?, index(high)?);
            if low >= high {
                return Err(order(low, high));
            }
            Ok((low, high))
        }
        _ => Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at \
             most two parts separated by '-'"
        )),
    }
}

/// The first index that both have. What cannot be read is skipped: it is named elsewhere.
pub fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text| {
        intervals(text)
            .filter_map(|interval| interval_of(interval, completions).ok())
            .collect::<Vec<_>>()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut completed, mut failed) = (completed.as_slice(), failed.as_slice());
    while let ([(c_low, c_high), more_completed @ ..], [(f_low, f_high), more_failed @ ..]) =
        (completed, failed)
    {
        if c_low <= f_high && f_low <= c_high {
            return Some(*c_low.max(f_low));
        }
        if c_low <= f_low {
            completed = more_completed;
        } else {
            failed = more_failed;
        }
    }
    None
}
