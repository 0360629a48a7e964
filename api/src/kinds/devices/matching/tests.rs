//! One device, and what expressions say of it.

use super::*;

fn said(text: &str) -> String {
    let device = Device {
        driver: "gpu.example.com",
        allows_multiple: true,
        attributes: vec![
            ("model", Attribute::Text("big")),
            ("other.example.com/slot", Attribute::Int(3)),
            ("healthy", Attribute::Bool(true)),
            ("firmware", Attribute::Version("1.10.0")),
        ],
        capacity: vec![("memory", Quantity::parse("8Gi").unwrap())],
    };
    match Expression::compile(text).map(|one| one.matches(&device)) {
        Ok(Ok(is_selected)) => is_selected.to_string(),
        Ok(Err(error)) => error,
        Err(error) => error.lines().next().unwrap().to_owned(),
    }
}

#[test]
fn expressions_see_driver_attributes_and_capacity() {
    for (text, expected) in [
        ("device.driver == 'gpu.example.com'", "true"),
        ("device.driver == 'net.example.com'", "false"),
        (
            "device.attributes['gpu.example.com'].model == 'big'",
            "true",
        ),
        ("device.attributes['other.example.com'].slot > 3", "false"),
        ("device.attributes['gpu.example.com'].healthy", "true"),
        ("device.allowMultipleAllocations", "true"),
        (
            "device.attributes['gpu.example.com'].firmware.isGreaterThan(semver('1.9.0'))",
            "true",
        ),
        (
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('8192Mi')) == 0",
            "true",
        ),
        (
            "cel.bind(gpu, device.attributes['gpu.example.com'], gpu.healthy && gpu.model == 'big')",
            "true",
        ),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn a_domain_that_a_device_has_not_is_empty() {
    for (text, expected) in [
        ("has(device.attributes['none.example.com'].model)", "false"),
        ("'none.example.com' in device.attributes", "false"),
        ("'gpu.example.com' in device.attributes", "true"),
        (
            "device.attributes['none.example.com'].model == 'big'",
            "no such key: model",
        ),
        ("device.attributes.size() == 2", "true"),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_answer_is_told() {
    for (text, expected) in [
        (
            "device.attributes['gpu.example.com'].model",
            "CEL result of type string could not be converted to bool",
        ),
        (
            "device.driver",
            "must evaluate to bool or the unknown type, not string",
        ),
        (
            "devices.driver == ''",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'devices' (in \
             container '')",
        ),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}
