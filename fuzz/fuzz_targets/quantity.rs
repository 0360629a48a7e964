//! The texts of quantities and times: the canonical form stands for the same value, and for itself.
#![no_main]

use coracle_api::quantity::Quantity;
use coracle_api::timestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(at) = timestamp::parse(text) {
        let printed = timestamp::format_micro_time(at);
        let again = timestamp::parse(&printed).expect("it was printed");
        assert_eq!(timestamp::format_micro_time(again), printed);
        let seconds = timestamp::parse(&timestamp::format_time(at)).expect("it was printed");
        assert_eq!(timestamp::format_time(seconds), timestamp::format_time(at));
    }
    let Ok(quantity) = Quantity::parse(text) else {
        return;
    };
    let printed = quantity.to_string();
    let again = Quantity::parse(&printed).expect("it was printed");
    assert_eq!(again, quantity, "{text:?} as {printed:?}");
    assert_eq!(again.to_string(), printed);
    assert_eq!(quantity.value() < 0, quantity.is_negative());
    assert_eq!(quantity.milli_value() < 0, quantity.is_negative());
    assert!(quantity.minus(quantity).is_zero());
});
