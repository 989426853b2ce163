//! How does the command talk, and does it say all about itself? `--quiet`, colours, `lodger help`, completions and
//! man pages.

use crate::common::Sandbox;
use clap::{Command, CommandFactory};
use std::process::{Command as Program, Stdio};

/// Something is said of it: how it was understood.
const TRACE: &str = "8,0 1 1 0.0 100 Q R 0 + 8 [fio]\n8,0 1 2 0.1 100 Q R 8 + 8 [fio]\n";

fn with_a_trace() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("trace.txt", TRACE);
    sandbox
}

#[test]
fn quiet_keeps_notes_back_and_nothing_else() {
    let sandbox = with_a_trace();
    let words = ["trace", "convert", "trace.txt", "--to", "csv"];
    let loud = sandbox.ok(&words);
    assert!(loud.stderr.starts_with("note: "), "{}", loud.stderr);
    for quiet in ["-q", "--quiet"] {
        let before = sandbox.ok(&[&[quiet], &words[..]].concat());
        let after = sandbox.ok(&[&words[..], &[quiet]].concat());
        for outcome in [before, after] {
            assert_eq!(outcome.stderr, "");
            assert_eq!(outcome.stdout, loud.stdout);
        }
    }
    let wrong = sandbox.run(&["trace", "info", "missing", "--quiet"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.starts_with("error: "), "{}", wrong.stderr);
    // fio's options are found behind ours.
    let job = ["--name=j", "--rw=randread", "--size=1m", "--number_ios=3"];
    let words = [&["-q", "simulate", "--drive", "tiny"], &job[..]].concat();
    assert_eq!(sandbox.ok(&words).stderr, "");
}

#[test]
fn colours_are_where_they_are_wanted() {
    let sandbox = with_a_trace();
    let of = |words: &[&str], name: &str| {
        let mut command = sandbox.command(words);
        command.env_remove("NO_COLOR").env(name, "1");
        let output = command.output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let cases: [(&[&str], &str); 4] = [
        (&["trace", "info", "missing"], "error:"),
        (&["trace", "info", "missing"], "hint:"),
        (&["trace", "convert", "trace.txt", "--to", "csv"], "note:"),
        (&["simulte"], "hint:"),
    ];
    for (words, label) in cases {
        let (coloured, plain) = (of(words, "CLICOLOR_FORCE"), of(words, "NO_COLOR"));
        assert!(coloured.contains(&format!("m{label}\x1b[0m")), "{coloured}");
        assert!(plain.contains(label) && !plain.contains('\x1b'), "{plain}");
        // To a pipe as to a terminal that has none.
        assert_eq!(of(words, "CLICOLOR"), plain);
    }
}

/// A note was once written behind the line that tells how far the runs are.
#[cfg(target_os = "linux")]
#[test]
fn what_is_said_while_runs_go_on_has_lines_of_its_own() {
    let sandbox = Sandbox::new();
    // Long enough that it is told how far they are, on a machine three times as fast.
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nio_size=12g\nnorandommap\nwrite_lat_log=x\n";
    sandbox.file("job.fio", job);
    let args = "compare job.fio --drive tiny --hmb off,64KiB,96KiB --workers 1 --output table.txt";
    let line = format!("{} {args}", env!("CARGO_BIN_EXE_lodger"));
    // What is written to a terminal, which util-linux plays.
    let mut terminal = Program::new("script");
    terminal
        .args(["-qec", &line, "typescript"])
        .current_dir(&sandbox.dir);
    let Ok(ended) = terminal.stdin(Stdio::null()).stdout(Stdio::null()).status() else {
        eprintln!("skipped: `script` is not installed");
        return;
    };
    assert!(ended.success());
    let written = std::fs::read(sandbox.dir.join("typescript")).unwrap();
    let written = String::from_utf8_lossy(&written);
    let (before, _) = written.rsplit_once("note:").expect("of the last run");
    let line = before.rsplit('\n').next().unwrap();
    assert!(
        line.contains("% 3 runs"),
        "nothing was to be seen: {line:?}"
    );
    // The whole line is erased, from its beginning.
    let (_, since) = line.rsplit_once("left").expect("how long it takes");
    assert!(since.contains("\r\u{1b}[2K"), "{since:?}");
}

#[test]
fn help_is_that_of_the_command() {
    let sandbox = Sandbox::new();
    for words in [&[][..], &["simulate"], &["drives", "show"]] {
        let help = sandbox.ok(&[&["help"], words].concat()).stdout;
        assert_eq!(help, sandbox.ok(&[words, &["--help"]].concat()).stdout);
        assert!(help.contains("Usage: lodger"), "{help}");
    }
    let wrong = sandbox.run(&["help", "simulte"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("'simulate'"), "{}", wrong.stderr);
}

/// Every command of ours with the words that call it; those of the Python package as well.
fn commands() -> Vec<(Vec<String>, Vec<String>)> {
    fn add(command: &Command, words: &[String], all: &mut Vec<(Vec<String>, Vec<String>)>) {
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let longs = shown.filter_map(|arg| arg.get_long());
        let longs = longs.map(|long| format!("--{long}")).collect();
        all.push((words.to_vec(), longs));
        for below in command.get_subcommands() {
            let words = [words, &[below.get_name().to_owned()]].concat();
            add(below, &words, all);
        }
    }
    let mut all = Vec::new();
    let mut command = lodger::args::Cli::command();
    command.build();
    add(&command, &[], &mut all);
    let of = |words: &[&str], longs: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        (owned(words), owned(longs))
    };
    all.push(of(&["sweep"], &["--vary", "--optimise", "--out"]));
    all.push(of(&["study", "run"], &["--nulls", "--seeds"]));
    all.push(of(&["reproduce"], &["--list", "--quick"]));
    all
}

/// What bash offers for the last of these words.
fn offered(script: &str, lines: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut text = script.to_owned();
    text += r#"
offer() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _lodger lodger "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  echo "${COMPREPLY[*]}"
}
"#;
    for words in lines {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        text += &format!("offer lodger {}\n", quoted.join(" "));
    }
    let mut bash = Program::new("bash");
    bash.args(["--norc", "-s"]).stdin(Stdio::piped());
    let mut bash = bash.stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut bash.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    output.lines().map(words).collect()
}

#[cfg(unix)]
#[test]
fn bash_completes_every_option_of_every_command() {
    let script = Sandbox::new().ok(&["completions", "bash"]).stdout;
    let commands = commands();
    let typed = |words: &Vec<String>| [&words[..], &["--".to_owned()]].concat();
    let lines: Vec<Vec<String>> = commands.iter().map(|(words, _)| typed(words)).collect();
    let offers = offered(&script, &lines);
    assert_eq!(offers.len(), commands.len());
    for ((words, longs), offered) in commands.iter().zip(offers) {
        // What follows it is not read.
        let is_read = !matches!(words[..], [ref first, ..] if first == "help" && words.len() > 1);
        for long in longs.iter().filter(|_| is_read) {
            assert!(
                offered.contains(long),
                "{words:?}: {long} is not in {offered:?}"
            );
        }
    }
    let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines = [
        "simu",
        "simulate x --drive rc",
        "simulate x --hmb-o",
        "man dr",
    ];
    let offers = offered(&script, &lines.map(line));
    let wanted = ["simulate", "rc100-240 rc100-480", "--hmb-offer", ""];
    assert_eq!(offers, wanted.map(line));
}

#[test]
fn every_shell_gets_all_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = sandbox.ok(&["completions", shell]).stdout;
        for word in ["simulate", "reproduce", "precondition", "optimise"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // Values are not completed in all of them.
        let names = matches!(shell, "bash" | "fish" | "zsh");
        assert_eq!(script.contains("rc100-480"), names, "{shell}");
    }
    assert_eq!(sandbox.run(&["completions", "tcsh"]).code, Some(2));
}

#[test]
fn every_command_has_a_page_with_all_its_options() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.dir.join("man1")).unwrap();
    sandbox.ok(&["man", "--out", "man1"]);
    for (words, longs) in commands() {
        let name: String = words.iter().map(|word| format!("-{word}")).collect();
        let path = sandbox.dir.join(format!("man1/lodger{name}.1"));
        let page =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for long in longs {
            let escaped = long.replace('-', "\\-");
            assert!(page.contains(&escaped), "{path:?} lacks {long}");
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = sandbox.ok(&[&["man"], &words[..]].concat()).stdout;
        assert_eq!(printed, page);
    }
    let page = sandbox.ok(&["man", "simulate"]).stdout;
    let examples = page.split(".SH EXAMPLES\n.nf\nExamples:\n").nth(1).unwrap();
    assert!(examples.ends_with(".fi\n"), "{examples}");
    let wrong = sandbox.run(&["man", "simulte"]);
    assert_eq!(wrong.code, Some(2));
}
