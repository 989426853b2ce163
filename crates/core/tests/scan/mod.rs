//! A reader of Rust source that knows just enough for the rules of `architecture.rs`: what is code
//! and what is not, which modules a file names, and how long its functions are.

use std::collections::BTreeMap;

/// The source with comments and the contents of literals blanked, line for line and byte for byte.
pub fn code(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match literal_or_comment(bytes, at) {
            Some(end) => end.min(bytes.len()),
            None => {
                out.push(bytes[at]);
                at += 1;
                continue;
            }
        };
        let blanked = bytes[at..end].iter();
        out.extend(blanked.map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
        at = end;
    }
    String::from_utf8(out).expect("multi-byte characters stand in comments and literals only")
}

/// Where the comment or literal that begins at `at` ends; `None` if none begins there.
fn literal_or_comment(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let in_word = at > 0 && is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|&b| b == b'\n');
        return Some(at + length.unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(at + block_comment(rest));
    }
    if rest[0] == b'"' {
        return Some(at + quoted(rest, b'"'));
    }
    if !in_word && (rest.starts_with(b"r\"") || rest.starts_with(b"r#")) {
        return raw_string(rest, 1).map(|length| at + length);
    }
    if !in_word && (rest.starts_with(b"br\"") || rest.starts_with(b"br#")) {
        return raw_string(rest, 2).map(|length| at + length);
    }
    // A character, not a lifetime: it ends after one character or an escape.
    if rest[0] == b'\'' && rest.len() > 2 {
        let width = match rest[1] {
            b'\\' => return Some(at + quoted(rest, b'\'')),
            first => match first.leading_ones() {
                0 => 1,
                ones => ones as usize,
            },
        };
        if rest.get(1 + width) == Some(&b'\'') {
            return Some(at + width + 2);
        }
    }
    None
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Length of a raw string whose hashes begin at `from`; `None` for a raw identifier.
fn raw_string(rest: &[u8], from: usize) -> Option<usize> {
    let hashes = rest[from..].iter().take_while(|&&b| b == b'#').count();
    let open = from + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &rest[open + 1..];
    let length = body.windows(close.len()).position(|w| w == close);
    Some(open + 1 + length.map_or(body.len(), |length| length + close.len()))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Line number, from 1, of a byte.
fn line(code: &str, at: usize) -> usize {
    code[..at].bytes().filter(|&b| b == b'\n').count() + 1
}

/// Places of a whole word in code.
pub fn word_places(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let whole = |at: usize| {
        let before = at
            .checked_sub(1)
            .is_some_and(|before| is_word(bytes[before]));
        let after = bytes.get(at + word.len()).is_some_and(|&b| is_word(b));
        !before && !after
    };
    let found = code.match_indices(word).map(|(at, _)| at);
    found.filter(|&at| whole(at)).collect()
}

/// Lines on which a whole word stands.
pub fn word_lines(code: &str, word: &str) -> Vec<usize> {
    let places = word_places(code, word);
    places.into_iter().map(|at| line(code, at)).collect()
}

/// Names that follow `root::` anywhere, groups taken apart: `std::{fs, io::Read}` names `fs` and
/// `io`. A glob, or another name for the root, counts as `*`.
pub fn named_under(code: &str, root: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for at in word_places(code, root) {
        let rest = code[at + root.len()..].trim_start();
        let number = line(code, at);
        if let Some(path) = rest.strip_prefix("::") {
            names.extend(first_segments(path).into_iter().map(|name| (number, name)));
        } else if rest.starts_with("as ") {
            names.push((number, "*".to_owned()));
        }
    }
    names
}

/// First segments of a path or of the members of a group.
fn first_segments(path: &str) -> Vec<String> {
    let path = path.trim_start();
    if path.starts_with('*') {
        return vec!["*".to_owned()];
    }
    let Some(group) = path.strip_prefix('{') else {
        let length = path.bytes().take_while(|&b| is_word(b)).count();
        return vec![path[..length].to_owned()];
    };
    let mut names = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (at, byte) in group.bytes().enumerate() {
        let ends_member = depth == 0 && matches!(byte, b',' | b'}');
        if ends_member && !group[start..at].trim().is_empty() {
            names.extend(first_segments(&group[start..at]));
        }
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            b',' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    names
}

/// Top-level modules of the crate that a file names, by `crate::` or by enough `super::`. `module`
/// is the file's own path (`["ftl", "collecting"]`); `exports` says where names re-exported at the
/// crate's root come from.
pub fn modules_named(
    code: &str,
    module: &[&str],
    exports: &BTreeMap<String, String>,
) -> Vec<(usize, String)> {
    let mut names = named_under(code, "crate");
    for at in word_places(code, "super") {
        let mut rest = code[at..].trim_start();
        let mut up = 0;
        while let Some(path) = rest.strip_prefix("super").map(str::trim_start) {
            let Some(path) = path.strip_prefix("::") else {
                break;
            };
            rest = path.trim_start();
            up += 1;
        }
        // Counted from the first of a chain, and only where it ends at the crate's root.
        if up == module.len() + inline_depth(code, at) {
            let number = line(code, at);
            names.extend(first_segments(rest).into_iter().map(|name| (number, name)));
        }
    }
    let origin = |name: String| exports.get(&name).cloned().unwrap_or(name);
    let names = names.into_iter();
    names.map(|(number, name)| (number, origin(name))).collect()
}

/// How many inline modules (`mod tests { ... }`) a byte stands in.
fn inline_depth(code: &str, at: usize) -> usize {
    let opened = word_places(code, "mod")
        .into_iter()
        .filter(|&start| start < at);
    opened
        .filter(|&start| body_end(&code[start..]).is_some_and(|end| start + end > at))
        .count()
}

/// The code without the modules that are compiled for tests only.
pub fn without_tests(code: &str) -> String {
    let mut code = code.to_owned();
    while let Some(start) = code.find("#[cfg(test)]") {
        let end =
            body_end(&code[start..]).map_or(start + "#[cfg(test)]".len(), |end| start + end + 1);
        let blank: String = code[start..end]
            .chars()
            .map(|c| if c == '\n' { c } else { ' ' })
            .collect();
        code.replace_range(start..end, &blank);
    }
    code
}

/// Where the names re-exported by `lib.rs` come from: name to module.
pub fn exports(lib: &str) -> BTreeMap<String, String> {
    let code = code(lib);
    let mut exports = BTreeMap::new();
    for (at, _) in code.match_indices("pub use ") {
        let statement = &code[at + "pub use ".len()..];
        let statement = &statement[..statement.find(';').unwrap_or(statement.len())];
        if let Some((module, rest)) = statement.trim().split_once("::") {
            for name in first_segments(rest) {
                exports.insert(name, module.to_owned());
            }
        }
    }
    exports
}

/// A function: its name, the line of its `fn`, and its length in lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// The functions with a body, nested ones included.
pub fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for at in word_places(code, "fn") {
        let rest = &code[at + 2..];
        let name: String = rest
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        // `fn(u32)` is a type.
        if name.is_empty() {
            continue;
        }
        let Some(length) = body_end(rest) else {
            continue;
        };
        let first = line(code, at);
        let last = line(code, at + 2 + length);
        functions.push(Function {
            name,
            line: first,
            lines: last - first + 1,
        });
    }
    functions
}

/// The bodies of the `impl` blocks of a type, traits' included.
pub fn impls(code: &str, of: &str) -> Vec<String> {
    let mut bodies = Vec::new();
    for at in word_places(code, "impl") {
        let rest = &code[at..];
        let (Some(open), Some(end)) = (rest.find('{'), body_end(rest)) else {
            continue;
        };
        let head = &rest[..open];
        // `impl Fn(&Device)` is a type.
        if head.contains(&format!(" {of}<")) && !head.contains('(') {
            bodies.push(rest[open..=end].to_owned());
        }
    }
    bodies
}

/// How many fields a struct has; `None` if there is no such struct.
pub fn struct_fields(code: &str, name: &str) -> Option<usize> {
    let at = code.find(&format!("struct {name}"))?;
    let rest = &code[at..];
    let body = &rest[rest.find('{')? + 1..body_end(rest)?];
    let mut depth = 0;
    let mut fields = 0;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'<' => depth += 1,
            b')' | b']' | b'>' => depth -= 1,
            b':' if depth == 0 => {
                let path = body[at + 1..].starts_with(':') || body[..at].ends_with(':');
                fields += usize::from(!path);
            }
            _ => {}
        }
    }
    Some(fields)
}

/// Where the body that follows a signature ends; `None` if there is none (a trait's method).
fn body_end(rest: &str) -> Option<usize> {
    let (mut round, mut curly) = (0i32, 0i32);
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if round == 0 && curly == 0 => return None,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}
