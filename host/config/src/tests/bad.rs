//! Projects that are refused, and with which words.

use expect_test::{Expect, expect};

use super::{problems, problems_of_sender};
use crate::check_text;

fn check(files: &[(&str, &str)], wanted: Expect) {
    wanted.assert_eq(&problems(files));
}

#[test]
fn every_problem_of_every_file_is_reported_at_once() {
    check(
        &[
            ("portway.toml", "[stor]\npath = 3\n[limits]\nruns_max = 0\nfuel_per_message = -1\n"),
            (
                "interfaces/lab.toml",
                "durability = \"strickt\"\n[source]\nplugin = \"mllp\"\nlisten = \"localhost\"\nidle_timeout = 10\n\
                 [[destination]]\nname = \"a b\"\n[[destination]]\nname = \"x\"\nconcurency = 3\nroute = \"bill\"\n",
            ),
            ("interfaces/Bad Name.toml", ""),
            ("interfaces/billing.toml", "[source]\nlisten = \"127.0.0.1:9999999\"\n"),
        ],
        expect![[r#"
            interfaces/Bad Name.toml: `Bad Name.toml` is not the name of an interface
              hint: a name has lower-case letters, digits, `-` and `_`, begins with a letter or digit, and is at most 64 long
            interfaces/billing.toml:1:1: `source.plugin` is missing
              hint: add `plugin = …` (name)
            interfaces/billing.toml:2:10: `listen` is not an address with a port
              hint: write an IP address and a port, such as `"127.0.0.1:2575"` or `"[::1]:2575"`
            interfaces/lab.toml:1:14: `durability` cannot be `strickt`
              hint: did you mean `strict`?
            interfaces/lab.toml:4:10: `listen` is not an address with a port
              hint: write an IP address and a port, such as `"127.0.0.1:2575"` or `"[::1]:2575"`
            interfaces/lab.toml:5:16: `idle_timeout` is an integer, not a duration
              hint: write such as `"500ms"`, `"30s"`, `"10m"`, `"2h"` or `"30d"`
            interfaces/lab.toml:7:8: `name` is not a name
              hint: a name has lower-case letters, digits, `-` and `_`, begins with a letter or digit, and is at most 64 long
            interfaces/lab.toml:10:1: unknown key `concurency` in `destination`
              hint: did you mean `concurrency`?
            interfaces/lab.toml:11:9: there is no interface `bill` to route to
              hint: known are `billing`, `lab`
            portway.toml:1:2: unknown key `stor`
              hint: did you mean `store`?
            portway.toml:4:12: `runs_max` is 0, outside its limits
              hint: write something from 1 to 4096
            portway.toml:5:20: `fuel_per_message` is outside its limits
              hint: write a whole number from 0 to 18446744073709551615"#]],
    );
}

#[test]
fn a_project_needs_its_file_and_its_folder() {
    check(
        &[],
        expect![[r#"
        interfaces: cannot be listed: No such file or directory (os error 2)
          hint: interfaces are files such as `interfaces/lab.toml`
        portway.toml: cannot be read: No such file or directory (os error 2)
          hint: a project is a folder with a file `portway.toml`; it may be empty"#]],
    );
}

#[test]
fn syntax_errors_are_reported_and_the_rest_is_still_read() {
    check(
        &[("portway.toml", "a = = 1\n[limits]\nruns_max = 0\nb = 'open\n"), ("interfaces/x.toml", "\u{0}\n")],
        expect![[r#"
            interfaces/x.toml:1:1: not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
            interfaces/x.toml:1:2: not TOML: key with no value, expected `=`
            portway.toml:1:1: unknown key `a`
              hint: known are `store`, `admin`, `plugins`, `limits`, `traces`
            portway.toml:1:5: not TOML: extra `=`, expected nothing
            portway.toml:1:7: not TOML: unexpected key or value, expected newline, `#`
            portway.toml:3:12: `runs_max` is 0, outside its limits
              hint: write something from 1 to 4096
            portway.toml:4:1: unknown key `b` in `limits`
              hint: known are `message_bytes_max`, `intake_bytes_max`, `batch_messages_max`, `batch_bytes_max`, `waiting_bytes_max`, `waiting_max`, `runs_max`, `unflushed_max`, `prune_every`, `instances_max`, `memory_bytes_max`, `fuel_per_message`, `call_timeout`, `copy_bytes_max`, `stop_timeout`
            portway.toml:4:10: not TOML: invalid literal string, expected `'`"#]],
    );
}

#[test]
fn loops_unknown_targets_and_unfed_interfaces_are_refused() {
    let route = |to: &str| format!("[[destination]]\nname = \"next\"\nroute = \"{to}\"\n");
    check(
        &[
            ("portway.toml", ""),
            (
                "interfaces/a.toml",
                &format!("[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:1\"\n{}", route("b")),
            ),
            ("interfaces/b.toml", &route("c")),
            ("interfaces/c.toml", &route("b")),
            ("interfaces/d.toml", &route("dd")),
            ("interfaces/e.toml", &route("e")),
        ],
        expect![[r#"
            interfaces/c.toml:3:9: this route closes a loop: b → c → b
              hint: a message must not come back to an interface it was in; remove one of these routes
            interfaces/d.toml: interface `d` receives nothing
              hint: add `[source]`, or a route in another interface
            interfaces/d.toml:3:9: there is no interface `dd` to route to
              hint: did you mean `d`?
            interfaces/e.toml:3:9: this route closes a loop: e → e
              hint: a message must not come back to an interface it was in; remove one of these routes"#]],
    );
}

#[test]
fn two_interfaces_cannot_share_a_port_or_two_destinations_a_name() {
    let source = |listen: &str| format!("[source]\nplugin = \"mllp\"\nlisten = \"{listen}\"\n");
    check(
        &[
            ("portway.toml", "[admin]\nlisten = \"0.0.0.0:8620\"\n"),
            ("interfaces/a.toml", &source("127.0.0.1:2575")),
            ("interfaces/b.toml", &source("0.0.0.0:2575")),
            ("interfaces/c.toml", &source("127.0.0.1:8620")),
            ("interfaces/d.toml", &source("127.0.0.1:0")),
            (
                "interfaces/e.toml",
                &format!(
                    "{}{}",
                    source("127.0.0.1:0"),
                    "[[destination]]\nname = \"x\"\nroute = \"a\"\n".repeat(2)
                ),
            ),
        ],
        expect![[r#"
            interfaces/b.toml:3:10: `0.0.0.0:2575` is taken: interface `a` listens on `127.0.0.1:2575`
              hint: give each its own port; HTTP sources can share one if each has a `path`
            interfaces/c.toml:3:10: `127.0.0.1:8620` is taken: the admin API listens on `0.0.0.0:8620`
              hint: give each its own port; HTTP sources can share one if each has a `path`
            interfaces/e.toml:8:8: there are two destinations `x`
              hint: the other is in line 5; give each its own name
            portway.toml:2:10: `admin.listen` is `0.0.0.0:8620`, which is not a loopback address
              hint: write such as `"127.0.0.1:8620"`; reach it from elsewhere over SSH"#]],
    );
}

#[test]
fn destinations_say_what_they_lack() {
    check(
        &[
            ("portway.toml", "[plugins.own]\npath = \"own.wasm\"\n"),
            (
                "interfaces/a.toml",
                "[source]\nplugin = \"mllp\"\nlisten = \"127.0.0.1:1\"\ntls = { certificate = \"c.pem\", key = \"out\" }\n\
                 [[destination]]\nname = \"nowhere\"\n\
                 [[destination]]\nname = \"both\"\nroute = \"b\"\nretry = { first_wait = \"2m\", jitter = 101 }\n[destination.sender]\nplugin = \"file\"\n\
                 grants.folder = { type = \"folder\", path = \"missing\" }\n",
            ),
            ("interfaces/b.toml", ""),
            ("out/x", ""),
        ],
        expect![[r#"
            interfaces/a.toml:4:23: cannot read the certificate `DIR/c.pem`: No such file or directory (os error 2)
              hint: correct the path or the file's mode
            interfaces/a.toml:4:38: cannot read the key `DIR/out`: not a regular file
              hint: correct the path or the file's mode
            interfaces/a.toml:6:8: destination `nowhere` leads nowhere
              hint: add `[destination.sender]`, or `route = "…"` to another interface
            interfaces/a.toml:8:8: destination `both` waits longer at first than at most
              hint: raise `longest_wait`, or lower `first_wait`
            interfaces/a.toml:9:9: destination `both` has a sender and a route
              hint: remove one; two ways are two destinations
            interfaces/a.toml:10:39: `jitter` is 101, outside its limits
              hint: write something from 0 to 100
            interfaces/a.toml:13:43: there is no folder `DIR/missing`
              hint: create it, or correct the path
            portway.toml:2:8: cannot read the plugin `DIR/own.wasm`: No such file or directory (os error 2)
              hint: correct the path or the file's mode"#]],
    );
}

#[test]
fn references_stand_only_where_they_are_taken() {
    let problems = problems_of_sender(
        "settings = { a = \"${secret:A}\", b = \"${env:NOPE}\" }\n\
         grants.api = { type = \"http\", url = \"${secret:U}\", headers = { x = \"${secret:H}\" } }\n\
         isolation = \"${env:I}\"",
    );
    expect![[r#"
        interfaces/t.toml:5:18: `a`: `${secret:…}` is not taken by this option
          hint: write the value itself; the reference lists the options that take references
        interfaces/t.toml:6:37: `url`: `${secret:…}` is not taken by this option
          hint: write the value itself; the reference lists the options that take references
        interfaces/t.toml:6:68: `x`: `${secret:H}` has no value
          hint: it was looked for in the environment variable `PORTWAY_SECRET_H`; set it with `portway secrets set H`
        interfaces/t.toml:7:13: `isolation`: `${env:…}` is not taken by this option
          hint: write the value itself; the reference lists the options that take references"#]]
    .assert_eq(&problems);
}

#[test]
fn a_problem_with_a_secret_does_not_show_it() {
    for text in [
        "A = hunter2",
        "A = \"hunter2",
        "[hunter2]\nA = 1",
        "A = { hunter2 = 1 }",
        "A = \"x\"\nA = \"hunter2\"",
    ] {
        let problems = check_text("secrets.toml", text).to_string();
        assert!(!problems.is_empty() && !problems.contains("hunter2"), "{problems}");
    }
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let deep = format!("{}a = {}1{}", "[a.a.a]\n".repeat(50), "[".repeat(5_000), "]".repeat(5_000));
    let long = format!("[{}]", "a.".repeat(50_000));
    let settings = format!("[source]\nsettings.{}a = {}1", "a.".repeat(70), "{ b = ".repeat(70));
    let good = "[source]\nplugin = 'mllp'\nlisten = \"1.2.3.4:5\"\nallow = [\"::1\", 1e3, 1979-05-27]\n[[destination]]\nname = 'é'\n";
    let mut texts =
        vec![deep, long, settings, "\u{feff}x=1".into(), "x = 0x_".into(), "x = 99999999999999999999".into()];
    texts.extend((0..good.len()).filter(|end| good.is_char_boundary(*end)).map(|end| good[..end].to_owned()));
    texts.extend((0..good.len()).filter(|at| good.is_char_boundary(*at)).map(|at| good[at..].to_owned()));
    for text in texts {
        for file in ["portway.toml", "interfaces/x.toml", "secrets.toml"] {
            check_text(file, &text).to_string();
        }
    }
}
