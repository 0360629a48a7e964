//! Quantities: canonical forms, order, sums.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn check(texts: &[&str], expected: Expect) {
    let shown: Vec<String> = texts
        .iter()
        .map(|text| match Quantity::parse(text) {
            Ok(quantity) => format!(
                "{text} = {quantity} ({} units, {} milli)",
                quantity.value(),
                quantity.milli_value()
            ),
            Err(error) => format!("{text}: {error}"),
        })
        .collect();
    expected.assert_eq(&shown.join("\n"));
}

#[test]
fn canonical_forms() {
    check(
        &[
            "0",
            "0.0Gi",
            "100m",
            "0.1",
            "1.5",
            "1000",
            "1500m",
            "2000m",
            "1Ki",
            "1024Ki",
            "1.5Gi",
            "0.5Ki",
            "512",
            "1000Mi",
            "1e3",
            "12E6",
            "1E",
            "1.25e-3",
            "+5",
            "-3Mi",
            "5n",
            "0.1n",
            "9999999999999999999",
            "123456789012345678901234567890n",
            "1k",
            "1Ei",
            "0.3Mi",
            "93.13226001Gi",
        ],
        expect![[r#"
            0 = 0 (0 units, 0 milli)
            0.0Gi = 0 (0 units, 0 milli)
            100m = 100m (1 units, 100 milli)
            0.1 = 100m (1 units, 100 milli)
            1.5 = 1500m (2 units, 1500 milli)
            1000 = 1k (1000 units, 1000000 milli)
            1500m = 1500m (2 units, 1500 milli)
            2000m = 2 (2 units, 2000 milli)
            1Ki = 1Ki (1024 units, 1024000 milli)
            1024Ki = 1Mi (1048576 units, 1048576000 milli)
            1.5Gi = 1536Mi (1610612736 units, 1610612736000 milli)
            0.5Ki = 512 (512 units, 512000 milli)
            512 = 512 (512 units, 512000 milli)
            1000Mi = 1000Mi (1048576000 units, 1048576000000 milli)
            1e3 = 1e3 (1000 units, 1000000 milli)
            12E6 = 12e6 (12000000 units, 12000000000 milli)
            1E = 1E (1000000000000000000 units, 9223372036854775807 milli)
            1.25e-3 = 1250e-6 (1 units, 2 milli)
            +5 = 5 (5 units, 5000 milli)
            -3Mi = -3Mi (-3145728 units, -3145728000 milli)
            5n = 5n (1 units, 1 milli)
            0.1n = 1n (1 units, 1 milli)
            9999999999999999999 = 9223372036854775807 (9223372036854775807 units, 9223372036854775807 milli)
            123456789012345678901234567890n = 9223372036854775807 (9223372036854775807 units, 9223372036854775807 milli)
            1k = 1k (1000 units, 1000000 milli)
            1Ei = 1Ei (1152921504606846976 units, 9223372036854775807 milli)
            0.3Mi = 314572800m (314573 units, 314572800 milli)
            93.13226001Gi = 100000002736379658240n (100000002737 units, 100000002736380 milli)"#]],
    );
}

#[test]
fn what_is_no_quantity() {
    check(
        &[
            "", "a", "1.2.3", "1x", "1ki", "1 Gi", "--1", "1Kii", "1e", "1e3.5", ".", "1mm",
        ],
        expect![[r#"
            : quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            a: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            1.2.3: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            1x: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            1ki: unable to parse quantity's suffix
            1 Gi: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            --1: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            1Kii: unable to parse quantity's suffix
            1e: unable to parse quantity's suffix
            1e3.5: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            .: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
            1mm: unable to parse quantity's suffix"#]],
    );
}

proptest! {
    #[test]
    fn canonical_form_keeps_the_value(
        whole in 0_u32..1_000_000,
        fraction in "[0-9]{0,9}",
        suffix in prop::sample::select(vec![
            "", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3",
        ]),
        negative: bool,
    ) {
        let sign = if negative { "-" } else { "" };
        let quantity = Quantity::parse(&format!("{sign}{whole}.{fraction}{suffix}")).unwrap();
        let again = Quantity::parse(&quantity.to_string()).unwrap();
        prop_assert_eq!(quantity, again);
        prop_assert_eq!(quantity.to_string(), again.to_string());
    }

    #[test]
    fn sums_and_order_agree(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
        let [x, y] = [a, b].map(|milli| Quantity::from_milli(milli, Format::DecimalSi));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.plus(y).milli_value(), a + b);
        prop_assert_eq!(x.minus(y).milli_value(), a - b);
        prop_assert_eq!(Quantity::parse(&x.to_string()).unwrap(), x);
    }

    #[test]
    fn no_text_panics(text in "[-+0-9.eEinumkKMGTPx]{0,40}") {
        if let Ok(quantity) = Quantity::parse(&text) {
            prop_assert_eq!(Quantity::parse(&quantity.to_string()).unwrap(), quantity);
        }
    }
}
