//! The page.
//!
//! The files of `page/` with the module between them, and the default question answered beforehand, so that there
//! is something to see before, or without, any script.

use base64::Engine as _;
use lodger_page::{digits, escaped, foot, head};
use lodger_run::size;
use serde_json::{Value, json};
use std::fmt::Write as _;

const TITLE: &str = "What would host memory buy?";
const STYLE: &str = include_str!("../../../page/what-if.css");
const BODY: &str = include_str!("../../../page/what-if.html");
/// Jobs, with names in braces where values go.
const JOB: &str = include_str!("../../../page/job.fio");
const COLLECTION: &str = include_str!("../../../page/collection.fio");
const WORKER: &str = include_str!("../../../page/worker.js");
const EXAMPLE: &str = include_str!("../../../page/example.csv");
const SCRIPTS: [&str; 5] = [
    include_str!("../../../page/ask.js"),
    include_str!("../../../page/lodger.js"),
    include_str!("../../../page/choices.js"),
    include_str!("../../../page/show.js"),
    include_str!("../../../page/what-if.js"),
];

/// What the page begins with: values for the names in [`JOB`].
const DEFAULTS: [(&str, &str); 7] = [
    ("warning", ""),
    ("depth", "32"),
    ("touch", "16384m"),
    ("span", "16384m"),
    ("rw", "randread"),
    ("settle", "4000"),
    ("measured", "8000"),
];
const DRIVE: &str = "rc100-480";
/// Host memory of its curve, MiB.
const CURVE_MIB: [u64; 7] = [0, 12, 16, 24, 32, 38, 128];

/// The questions that the page begins with: host memory in bytes, and what is asked.
fn default_questions() -> Vec<(u64, Value)> {
    let job = DEFAULTS.iter().fold(JOB.to_owned(), |job, (name, value)| {
        job.replace(&format!("{{{name}}}"), value)
    });
    let question = |mib: &u64| {
        let setup = json!({"drive": DRIVE, "hmb": format!("{mib}MiB"), "seed": 1});
        (mib << 20, json!({"ask": "run", "setup": setup, "job": job}))
    };
    CURVE_MIB.iter().map(question).collect()
}

/// The page with a module, the one that `crates/what-if-wasm` compiles to, packed by gzip.
///
/// # Errors
/// If the default question cannot be answered.
pub fn page(module: &[u8]) -> Result<String, String> {
    let mut points = Vec::new();
    for (bytes, question) in default_questions() {
        let job = answered(&question)?["report"]["jobs"][2].take();
        points.push((bytes, job["read"]["iops"].as_f64().unwrap_or_default()));
    }
    let line = json!({"name": "reads a second", "points": points});
    let curve = answered(
        &json!({"ask": "draw", "title": "Requests a second", "says": "more host memory to the right",
            "axes": ["host memory, bytes", "requests a second"], "lines": [line]}),
    )?;
    let body = BODY
        .replace("<!--SAYS-->", &says(&points))
        .replace("<!--CURVE-->", curve["html"].as_str().unwrap_or_default())
        .replace("<!--VALUES-->", &values(&points));
    let mut out = head(TITLE);
    let _ = writeln!(out, "<style>{STYLE}</style>{body}");
    for (name, text) in [
        ("job-file", JOB),
        ("collection-file", COLLECTION),
        ("example", EXAMPLE),
        ("worker", WORKER),
    ] {
        let _ = writeln!(
            out,
            "<script type=\"text/plain\" id=\"{name}\">{text}</script>"
        );
    }
    let module = base64::engine::general_purpose::STANDARD.encode(module);
    let _ = writeln!(
        out,
        "<script type=\"text/plain\" id=\"module\">{module}</script>"
    );
    out += foot().trim_end().trim_end_matches("</html>");
    for script in SCRIPTS {
        let _ = writeln!(out, "<script>{script}</script>");
    }
    Ok(out + "</html>\n")
}

/// What the page's own module would answer.
fn answered(question: &Value) -> Result<Value, String> {
    let answer: Value = serde_json::from_str(&lodger_what_if::answer(&question.to_string()))
        .map_err(|error| error.to_string())?;
    match answer["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(answer),
    }
}

fn says(points: &[(u64, f64)]) -> String {
    let (off, most) = (points[0].1, points[points.len() - 1].1);
    escaped(&format!(
        "Random reads over 16 GiB of a Toshiba RC100 with 32 in flight: {} a second without host memory, {} \
         with all it asks for, {} times as many.",
        off.round(),
        most.round(),
        digits((most / off * 10.0).round() / 10.0)
    ))
}

fn values(points: &[(u64, f64)]) -> String {
    let mut out = String::from("<table><tr><th>host memory, at most<th class=\"r\">reads a second");
    for (bytes, iops) in points {
        let bytes = match bytes {
            0 => "off".to_owned(),
            bytes => size::show(*bytes),
        };
        let _ = write!(out, "<tr><td>{bytes}<td class=\"r\">{}", iops.round());
    }
    out + "</table>"
}
