//! Does `lodger top` show what a served drive counts, and say what is wrong where there is none?

use crate::common::Sandbox;
use crate::nbd::Served;

#[test]
fn a_running_drive_is_looked_at() {
    let sandbox = Sandbox::new();
    let served = Served::new(&sandbox, "unix:drive", &["--metrics", "unix:metrics"]);
    for place in ["metrics", "unix:metrics"] {
        let look = sandbox.ok(&["top", place]);
        assert!(
            look.stdout.starts_with("Tiny teaching drive"),
            "{}",
            look.stdout
        );
        for word in [
            "commands ",
            "host memory ",
            "write amplification",
            "late by ",
        ] {
            assert!(look.stdout.contains(word), "{word}: {}", look.stdout);
        }
        assert!(!look.stdout.contains('\u{1b}'), "{}", look.stdout);
    }
    let refused = |args: &[&str], words: &str| {
        let outcome = sandbox.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(words),
            "{args:?}: {}",
            outcome.stderr
        );
    };
    refused(&["top", "nowhere"], "hint: ");
    refused(
        &["top", "localhost:1"],
        "cannot look at the drive at `localhost:1`",
    );
    refused(&["top", "metrics", "--interval", "0"], "0.1 to 3600");
    // What serves blocks greets, and then waits for a client to speak NBD.
    refused(&["top", "drive"], "no drive of `lodger serve --metrics`");
    let taken = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:other",
        "--metrics",
        "unix:metrics",
    ];
    refused(&taken, "cannot listen at `metrics`");
    let wrong = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:other",
        "--metrics",
        "nonsense",
    ];
    refused(&wrong, "--metrics");
    assert_eq!(served.end().code, Some(0));
}
