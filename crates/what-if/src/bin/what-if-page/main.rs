//! Writes the what-if page: `what-if-page MODULE PAGE`, with the module that `crates/what-if-wasm` compiles to,
//! packed by gzip. `scripts/what-if.sh` compiles and packs it and calls this.

mod page;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, page] = &arguments[..] else {
        eprintln!("error: two arguments are needed, the module and the page to be written");
        eprintln!("hint: `make page` does both");
        return ExitCode::from(2);
    };
    match write(Path::new(module), Path::new(page)) {
        Ok(bytes) => {
            println!("{page}: {:.2} MB", bytes as f64 / 1e6);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn write(module: &Path, to: &Path) -> Result<usize, String> {
    let of = |path: &Path| path.display().to_string();
    let bytes =
        fs::read(module).map_err(|error| format!("cannot read `{}`: {error}", of(module)))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(format!("`{}` is not packed by gzip", of(module)));
    }
    let text = page::page(&bytes)?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make `{}`: {error}", of(folder)))?;
    }
    fs::write(to, &text).map_err(|error| format!("cannot write `{}`: {error}", of(to)))?;
    Ok(text.len())
}
