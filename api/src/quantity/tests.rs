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
        ],
        expect![],
    );
}

#[test]
fn what_is_no_quantity() {
    check(
        &[
            "", "a", "1.2.3", "1x", "1ki", "1 Gi", "--1", "1Kii", "1e", "1e3.5", ".", "1mm",
        ],
        expect![],
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
