//! Is what is wrong in a model's file named, with its key, value and line?

use super::super::{Captured, Context, parse};

/// No file is known, and none can be read.
fn nothing() -> Context<'static> {
    Context {
        transactions: None,
        transaction_bytes: None,
        file_name: "dir/model.toml",
        known: &|_| None,
        include: &|path| {
            assert_eq!(path.display().to_string(), "dir/captured.toml");
            Err(std::io::Error::other("no such file"))
        },
        drive_bytes: 4 << 30,
        volatile_cache: false,
        window_bytes: 0,
        seed: 0,
        commit: None,
        clients: None,
    }
}

fn error(text: &str, window_bytes: u64) -> String {
    let context = Context {
        window_bytes,
        ..nothing()
    };
    parse(text, &context).expect_err("it is wrong").to_string()
}

#[test]
fn what_is_wrong_is_named() {
    let good = "[logging]\ndatabase = \"redis\"\ncommit = \"ba\"\ncaptured = \"captured.toml\"\n\
                clients = 2\ntransactions = 9\n";
    assert!(
        error(good, 8 << 20).contains("dir/captured.toml`, which cannot be read: no such file")
    );
    assert!(error(good, 0).contains("the drive has no byte window"));
    assert!(error(good, 1 << 20).contains("`segment_kib` must be at most 512"));
    let with = |line: &str| error(&format!("{good}{line}\n"), 8 << 20);
    assert!(with("cores = 0").contains("`cores` must be between 1 and 10000, found 0"));
    assert!(with("switch_ns = 2000000000").contains("`switch_ns` must be between"));
    assert!(with("log_mib = 100000").contains("no room"));
    let beyond = with("log_mib = 64\nunwritten_mib = 65");
    assert!(
        beyond.contains("`unwritten_mib` must be between 1 and 64, found 65"),
        "{beyond}"
    );
    assert!(with("segment_kib = 6").contains("multiple of 4"));
    assert!(
        with("recovery = \"tape\"")
            .contains("`recovery` must be `read-dma`, `loads` or `blocks`, found `tape`")
    );
    // Read back as the window is, where nothing of the log stands in one: that was said and not done.
    for commit in ["block", "async"] {
        let with = |line: &str| {
            let text = good.replace("\"ba\"", &format!("\"{commit}\""));
            error(&format!("{text}{line}\n"), 8 << 20)
        };
        for path in ["read-dma", "loads"] {
            let found = with(&format!("recovery = \"{path}\""));
            let expected = format!(
                "`recovery` must be `blocks` where `commit` is `{commit}`, which leaves nothing of the log in the byte window, \
                 found `{path}` (dir/model.toml)"
            );
            assert_eq!(found, expected);
        }
        assert!(with("recovery = \"blocks\"").contains("which cannot be read: no such file"));
    }
    assert!(with("recovery = \"loads\"").contains("which cannot be read: no such file"));
    assert!(
        with("client_ns = -1").contains("`client_ns` must be a whole number from 0 on, found `-1`")
    );
    assert!(
        with("locks = 1.5")
            .contains("`locks` must be a whole number from 0 to 4294967295, found `1.5`")
    );
    assert!(with("cores = \"a\"").contains("found \"a\""));
    assert!(with("lock = 1").contains("unknown key `lock`"));
    let hint = |text: &str| {
        let context = nothing();
        parse(text, &context)
            .expect_err("it is wrong")
            .hint
            .unwrap_or_default()
    };
    assert_eq!(hint(&format!("{good}lock = 1\n")), "did you mean `locks`?");
    assert_eq!(
        hint("[logging]\ndatabase = \"postgres\""),
        "did you mean `postgresql`?"
    );
    assert!(hint("[log]\nwrite_call_ns = 1\n").contains("captured distributions"));
    assert!(error("[logging]\ndatabase = \"redis\"\n", 0).contains("`commit` is missing"));
    assert!(with("cheese = 1").contains("(dir/model.toml:7)"));
    assert!(error("[logging]\ndatabase = \"oracle\"", 0).contains("(dir/model.toml:2)"));
}

#[test]
fn what_no_distribution_can_be_is_refused() {
    let with = |operation: &str, journalled: &str| {
        let text = format!(
            "[log]\nwrite_call_ns = 1\nsync_call_ns = 1\njournalled = {journalled}\njournal_commit_bytes = [[4096, 1]]\n\
             [[operation]]\nname = \"a\"\nshare = 100\ncpu_ns = 5\n[[operation]]\nname = \"b\"\n{operation}\n"
        );
        Captured::parse(&text, "c.toml").map_err(|error| error.to_string())
    };
    assert!(with("share = 1\ncpu_ns = 5\nlog_bytes = [[0, 3], [100, 1]]", "1").is_ok());
    for (operation, journalled, said) in [
        (
            "share = -5\ncpu_ns = 5",
            "0",
            "`share` of `b` must be 0 or more, found -5",
        ),
        (
            "share = nan\ncpu_ns = 5",
            "0",
            "`share` of `b` must be 0 or more, found NaN",
        ),
        (
            "share = 1\ncpu_ns = 0",
            "0",
            "`cpu_ns` of `b` must be at least 1",
        ),
        (
            "share = 1\ncpu_ns = 5\nlog_bytes = [[100, 0]]",
            "0",
            "no weight in `log_bytes` of `b`",
        ),
        (
            "share = 1\ncpu_ns = 5\nlog_bytes = [100, 2]",
            "0",
            "`log_bytes` must be a list of",
        ),
        (
            "share = 1\ncpu_ns = 5",
            "1.5",
            "`log.journalled` must be between 0 and 1, found 1.5",
        ),
    ] {
        let error = with(operation, journalled).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
