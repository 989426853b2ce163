//! Does `lodger ctl` reach a running drive, beside its socket or where `--ctl` says, and say what is wrong?

use crate::common::Sandbox;
use crate::nbd::Served;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_running_drive_is_told_what_is_to_happen_to_it() {
    let sandbox = Sandbox::new();
    let served = Served::new(&sandbox, "unix:drive", &[]);
    let mode = std::fs::metadata(sandbox.dir.join("drive.ctl")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    for socket in ["drive", "drive.ctl"] {
        let status = sandbox.ok(&["ctl", socket, "status"]).stdout;
        assert!(
            status.starts_with("Tiny teaching drive 512 MiB: well\n"),
            "{status}"
        );
    }
    // Of I/O queues and of all: there could be more failed than there were.
    let status = sandbox.ok(&["ctl", "drive", "status"]).stdout;
    assert!(
        status.contains("commands     0 of I/O queues, 0 in"),
        "{status}"
    );
    assert!(
        status.contains("failed       0, admin commands among them"),
        "{status}"
    );
    let rule = "fail 0x281 opcode=read every=100";
    let added = sandbox.ok(&["ctl", "drive", "rules", "add", rule]);
    assert_eq!(added.stdout, "rule 1\n");
    let unquoted = ["ctl", "drive", "rules", "add", "drop", "opcode=flush"];
    assert_eq!(sandbox.ok(&unquoted).stdout, "rule 2\n");
    let rules = sandbox.ok(&["ctl", "drive", "rules", "list"]).stdout;
    assert!(
        rules.contains(&format!("1  {rule}  # 0 of 0 times")),
        "{rules}"
    );
    let removed = sandbox.ok(&["ctl", "drive", "rules", "remove", "all"]);
    assert_eq!(removed.stdout, "removed 2\n");
    let heat = sandbox.ok(&["ctl", "drive", "throttle", "1ms"]).stdout;
    assert!(heat.starts_with("throttle 0.001s at "), "{heat}");
    sandbox.ok(&["ctl", "drive", "read-only", "--after", "1us"]);
    let status = sandbox.ok(&["ctl", "drive", "status", "--json"]).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["status"]["throttled"], true, "{status}");
    assert_eq!(served.end().code, Some(0));
    assert!(
        !sandbox.dir.join("drive.ctl").exists(),
        "gone with the drive"
    );
}

#[test]
fn what_is_refused_is_said_with_where_to_look() {
    let sandbox = Sandbox::new();
    let served = Served::new(&sandbox, "unix:drive", &[]);
    let refused = |args: &[&str], words: &str| {
        let outcome = sandbox.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        let said = outcome.stderr;
        assert!(said.contains(words), "{args:?}: {said}");
    };
    refused(
        &["ctl", "nowhere", "status"],
        "cannot ask the drive at `nowhere`",
    );
    refused(&["ctl", "drive", "rules", "add", "drip"], "first word");
    // The help that was named has no words of rules.
    refused(
        &["ctl", "drive", "rules", "add", "drip"],
        "`lodger ctl SOCKET rules add --help`",
    );
    refused(
        &["ctl", "drive", "rules", "add", "identify HMPRE=1"],
        "`identify` is for a file of rules",
    );
    refused(&["ctl", "drive", "rules", "remove", "7"], "no rule `7`");
    refused(&["ctl", "drive", "vanish"], "goes with `--socket`");
    refused(
        &["ctl", "drive", "rules", "add", "power-cut on=program"],
        "goes with `--socket`",
    );
    refused(
        &["ctl", "drive", "stall", "--for", "long"],
        "a time such as",
    );
    refused(
        &["ctl", "drive", "rules", "add", "drop\nstatus"],
        "one line",
    );
    refused(&["ctl", "drive"], "rules");
    assert_eq!(served.end().code, Some(0));
}

#[test]
fn a_socket_is_where_it_is_wanted_and_rules_of_a_file_are_read() {
    let sandbox = Sandbox::new();
    let rules = sandbox.dir.join("large.rules");
    std::fs::write(&rules, "identify HMPRE=51200\nread-only at=0s\n").unwrap();
    let more = ["--ctl", "elsewhere", "--faults", "large.rules"];
    let served = Served::new(&sandbox, "unix:drive", &more);
    let status = sandbox.ok(&["ctl", "elsewhere", "status"]).stdout;
    assert!(
        status.starts_with("Tiny teaching drive 512 MiB: read-only\n"),
        "{status}"
    );
    assert!(!sandbox.dir.join("drive.ctl").exists());
    let refused = |text: &str, words: &str| {
        std::fs::write(&rules, text).unwrap();
        let args = [
            "serve",
            "--drive",
            "tiny",
            "--nbd",
            "unix:other",
            "--faults",
            "large.rules",
        ];
        let outcome = sandbox.run(&args);
        assert_eq!(outcome.code, Some(2), "{text}: {}", outcome.stderr);
        let said = outcome.stderr;
        assert!(said.contains(words), "{text}: {said}");
    };
    refused("drop\nidentify HMPER=1\n", "(large.rules:2)");
    refused("vanish at=1s\n", "goes with `--socket`");
    refused("drip\n", "large.rules:1");
    assert_eq!(served.end().code, Some(0));
}
