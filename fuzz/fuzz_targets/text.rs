//! Small languages: schedules, durations, URLs, patterns, and the elements that certificates are
//! made of. Each is read or refused, with a message that is bounded by the text.
#![no_main]

use coracle_api::{cron, der, go_duration, go_regexp, serial_number, url};
use libfuzzer_sys::fuzz_target;

/// Of an error around the text, which it shows in quotes and escaped.
fn bounded(why: &str, text: &str) {
    assert!(
        why.len() <= 8 * text.len() + 512,
        "{} bytes of {}",
        why.len(),
        text.len()
    );
}

fn elements(bytes: &[u8]) {
    if let Some(all) = der::all(bytes) {
        let wholes = all.iter().flat_map(|one| one.whole);
        assert!(wholes.eq(bytes));
        for one in &all {
            assert!(one.whole.ends_with(one.content));
            let anew = der::element(one.tag, one.content);
            let (read, rest) = der::first(&anew).expect("it was made here");
            assert!(rest.is_empty() && (read.tag, read.content) == (one.tag, one.content));
        }
    }
    let _ = der::with_subject(bytes, &der::name("a", &["b"]));
    let _ = der::signed(bytes, bytes, bytes);
    let half_bytes = 32;
    let fixed = der::fixed_signature(bytes, half_bytes);
    assert!(fixed.is_none_or(|fixed| fixed.len() == 2 * half_bytes));
    let _ = serial_number::issued_at(serial_number::significant(bytes));
}

fuzz_target!(|data: &[u8]| {
    elements(data);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(why) = cron::parse(text) {
        bounded(&why, text);
    }
    match go_duration::parse(text) {
        Ok(nanoseconds) => {
            let printed = go_duration::format(nanoseconds.unsigned_abs());
            let again = go_duration::parse(&printed).unwrap_or(i64::MIN);
            assert_eq!(
                again.unsigned_abs(),
                nanoseconds.unsigned_abs(),
                "{printed}"
            );
        }
        Err(why) => bounded(&why, text),
    }
    if let Err(why) = url::parse(text) {
        bounded(&why, text);
    }
    let _ = url::is_of_request(text);
    let (_, compiled) = go_regexp::sized(text);
    match compiled {
        Ok(pattern) => drop(pattern.is_match(text)),
        Err(why) => bounded(&why, text),
    }
});
