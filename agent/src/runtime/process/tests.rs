//! What runs, merged from pod and image.

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn check_arguments(entrypoint: &str, cmd: &str, command: &str, args: &str, expected: &str) {
    let image = ImageConfig {
        entrypoint: words(entrypoint),
        cmd: words(cmd),
        ..ImageConfig::default()
    };
    let config = ContainerConfig {
        command: words(command),
        args: words(args),
        ..ContainerConfig::default()
    };
    assert_eq!(
        arguments(&config, &image).unwrap_or_default(),
        words(expected)
    );
}

#[test]
fn command_and_args_stand_over_entrypoint_and_cmd() {
    check_arguments("/ep", "a b", "", "", "/ep a b");
    check_arguments("/ep", "a b", "", "x", "/ep x");
    check_arguments("/ep", "a b", "/c", "", "/c");
    check_arguments("/ep", "a b", "/c", "x", "/c x");
    check_arguments("", "sh -c", "", "", "sh -c");
    check_arguments("", "", "", "", "");
}

#[test]
fn the_pods_variables_stand_over_the_images() {
    let image = ImageConfig {
        env: words("PATH=/img A=1 B=2"),
        ..ImageConfig::default()
    };
    let config = ContainerConfig {
        env: vec![("B".into(), "x=y".into()), ("C".into(), String::new())],
        tty: true,
        ..ContainerConfig::default()
    };
    assert_eq!(
        environment(&config, &image, "pod", "/root"),
        [
            "PATH=/img",
            "HOSTNAME=pod",
            "TERM=xterm",
            "A=1",
            "B=x=y",
            "C=",
            "HOME=/root"
        ]
    );
}

#[test]
fn stop_signals_have_names_and_numbers() {
    let check = |pod: &str, image: &str, expected: i32| {
        let config = ContainerConfig {
            stop_signal: pod.into(),
            ..ContainerConfig::default()
        };
        let image = ImageConfig {
            stop_signal: image.into(),
            ..ImageConfig::default()
        };
        assert_eq!(stop_signal(&config, &image), expected, "{pod} {image:?}");
    };
    check("", "", 15);
    check("", "SIGQUIT", 3);
    check("SIGUSR1", "SIGQUIT", 10);
    check("", "int", 2);
    check("", "9", 9);
    check("", "SIGRTMIN+3", 37);
    check("", "nonsense", 15);
}
