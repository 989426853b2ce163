//! Tables in the forms that other programs read.

/// A table as GitHub's Markdown, names to the left, values to the right.
pub(crate) fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    let mut line = |cells: Vec<String>| {
        out += &format!("| {} |\n", cells.join(" | "));
    };
    let texts = |cells: &[String]| cells.iter().map(|cell| markdown_text(cell)).collect();
    line(texts(head));
    let sides = (0..head.len()).map(|at| if at == 0 { ":--" } else { "--:" });
    line(sides.map(str::to_owned).collect());
    for row in rows {
        line(texts(row));
    }
    out
}

/// Text that Markdown shows as it is: names come from users and their files.
pub(crate) fn markdown_text(text: &str) -> String {
    let mut out = String::new();
    for letter in text.trim().chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', letter]),
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// A table as comma-separated values (RFC 4180, with line feeds); the first row has the names.
pub(crate) fn csv<N: AsRef<str>>(names: &[N], rows: &[Vec<String>]) -> String {
    let mut out = names
        .iter()
        .map(AsRef::as_ref)
        .collect::<Vec<_>>()
        .join(",");
    out.push('\n');
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_has_a_meaning_in_a_form_is_text_in_it() {
        let rows = [cells(&["a|b", "<x>"]), cells(&["say \"1,2\"", "\n"])];
        assert_eq!(
            markdown(&cells(&["_", ""]), &rows),
            "| \\_ |  |\n| :-- | --: |\n| a\\|b | &lt;x&gt; |\n| say \"1,2\" |  |\n"
        );
        assert_eq!(
            csv(&["n", "v"], &rows),
            "n,v\na|b,<x>\n\"say \"\"1,2\"\"\",\"\n\"\n"
        );
    }
}
