//! What the fuzzer begins with: the repository's own files, and the words that mean something in them.

use super::guest;
use super::nvme::HEAD_BYTES;
use lodger_core::spec;
use lodger_workload::fio;
use lodger_workload::trace::convert::convert;
use lodger_workload::trace::{Format, Options, load};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest seed: of traces, the beginning.
const SEED_BYTES_MAX: usize = 4096;

/// Writes seeds to `to/TARGET/` and words to `to/TARGET.dict`; `repository` is where the files are.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(repository: &Path, to: &Path) -> io::Result<()> {
    let seeds = Seeds { repository, to };
    seeds.copies("drive", &["drives", "examples"], "toml")?;
    seeds.copies("logging", &["workloads/logging"], "toml")?;
    seeds.copies("captured", &["workloads/logging/captured"], "toml")?;
    let jobs = [
        "workloads/jobs",
        "examples",
        "crates/cli/tests/fixtures/fio",
        "workloads/jobs/hmb-study",
    ];
    seeds.copies("fio", &jobs, "fio")?;
    seeds.sets()?;
    seeds.traces()?;
    seeds.commands()?;
    seeds.nbd()?;
    seeds.nvme()?;
    for (target, name, bytes) in guest::seeds() {
        seeds.put(target, name, &bytes)?;
    }
    seeds.words()
}

struct Seeds<'a> {
    repository: &'a Path,
    to: &'a Path,
}

impl Seeds<'_> {
    fn put(&self, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let folder = self.to.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    }

    fn files(&self, folder: &str, extension: &str) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.repository.join(folder))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|found| found == extension));
        paths.sort();
        Ok(paths)
    }

    fn copies(&self, target: &str, folders: &[&str], extension: &str) -> io::Result<()> {
        for folder in folders {
            for path in self.files(folder, extension)? {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                self.put(target, &name, &fs::read(&path)?)?;
            }
        }
        Ok(())
    }

    /// Each key of a drive file with its default, or a size.
    fn sets(&self) -> io::Result<()> {
        for (index, key) in spec::reference().iter().enumerate() {
            let value = match key.default.as_str() {
                "" | "-" => "64KiB",
                default => default,
            };
            self.put(
                "set",
                &format!("{index}"),
                format!("{}={value}", key.key).as_bytes(),
            )?;
        }
        Ok(())
    }

    /// A real trace's beginning in every format.
    fn traces(&self) -> io::Result<()> {
        let whole = fs::read(self.repository.join("workloads/git.ftrace"))?;
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let mut head = Vec::new();
        for line in lines {
            if head.len() + line.len() > SEED_BYTES_MAX {
                break;
            }
            head.extend_from_slice(line);
        }
        let failed = |error: lodger_workload::WorkloadError| io::Error::other(error.to_string());
        let (trace, _) = load(&head[..], "git.ftrace", &Options::default()).map_err(failed)?;
        self.put("trace", "git", &[&[0, 2], &head[..]].concat())?;
        for (index, format) in Format::ALL.into_iter().enumerate() {
            let mut text = Vec::new();
            if convert(&trace, format, &mut text).is_err() {
                continue;
            }
            text.truncate(SEED_BYTES_MAX);
            let index = u8::try_from(index).map_err(io::Error::other)?;
            let named = [&[index << 1 | 1, 2], &text[..]].concat();
            self.put("trace", &format!("{}-named", format.name()), &named)?;
            let recognised = [&[index << 1, 2], &text[..]].concat();
            self.put("trace", format.name(), &recognised)?;
        }
        Ok(())
    }

    fn commands(&self) -> io::Result<()> {
        for (index, line) in [
            "64MiB",
            "1.5TiB",
            "simulate job.fio --drive tiny --hmb 64MiB --set a=b --seed 1 --output-format json",
            "compare job.fio --drive tiny --drive rc100-480 --hmb off,32MiB",
            "advise job.fio --drive tiny --within 5% --slo p99=200us",
            "drives show tiny --output-format toml",
            "trace convert file --to csv --device all",
            "probe sim:tiny --experiment flush --budget 1h --destroy-data --yes A --noise 2",
        ]
        .iter()
        .enumerate()
        {
            self.put("command", &index.to_string(), line.as_bytes())?;
        }
        Ok(())
    }

    /// A server that agrees, and answers four reads.
    fn nbd(&self) -> io::Result<()> {
        let mut said = vec![4, 0x40];
        said.extend(b"NBDMAGICIHAVEOPT");
        said.extend(3u16.to_be_bytes());
        let mut reply = |kind: u32, data: &[u8]| {
            said.extend(0x0003_e889_0455_65a9_u64.to_be_bytes());
            said.extend(7u32.to_be_bytes());
            said.extend(kind.to_be_bytes());
            said.extend((data.len() as u32).to_be_bytes());
            said.extend(data);
        };
        let size = [
            &0u16.to_be_bytes()[..],
            &(64u64 << 20).to_be_bytes(),
            &0x25u16.to_be_bytes(),
        ];
        reply(3, &size.concat());
        let blocks = [512u32, 4096, 1 << 20].map(u32::to_be_bytes).concat();
        reply(3, &[&3u16.to_be_bytes()[..], &blocks].concat());
        reply(1, &[]);
        for cookie in 1..=4u64 {
            said.extend(0x6744_6698_u32.to_be_bytes());
            said.extend(0u32.to_be_bytes());
            said.extend(cookie.to_be_bytes());
            said.extend([0x5a; 4096]);
        }
        self.put("nbd", "reads", &said)
    }

    fn nvme(&self) -> io::Result<()> {
        let mut bytes = vec![0; HEAD_BYTES];
        for name in ["controller", "namespace", "host-memory"] {
            let path = format!("crates/probe/tests/fixtures/nvme/{name}.hex");
            let text = fs::read_to_string(self.repository.join(path))?;
            let mut page = vec![0; 4096];
            for line in text.lines() {
                let line = line.split('#').next().unwrap_or_default();
                let Some((offset, values)) = line.split_once(':') else {
                    continue;
                };
                let offset: usize = offset.trim().parse().map_err(io::Error::other)?;
                for (place, value) in page[offset..].iter_mut().zip(values.split_whitespace()) {
                    *place = u8::from_str_radix(value, 16).map_err(io::Error::other)?;
                }
            }
            bytes.extend(page);
        }
        self.put("nvme", "whole", &bytes)?;
        self.put(
            "nvme",
            "namespace",
            &bytes[HEAD_BYTES + 4096..HEAD_BYTES + 8192],
        )
    }

    /// Dictionaries, as libFuzzer reads them.
    fn words(&self) -> io::Result<()> {
        let dictionary = |words: &[String]| {
            let quoted = words.iter().map(|word| {
                let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
                format!("\"{escaped}\"\n")
            });
            quoted.collect::<String>()
        };
        let units = [
            "KiB", "MiB", "GiB", "TiB", "us", "ms", "ns", "MB/s", "MiB/s", "%", "GT/s",
        ];
        let mut keys: Vec<String> = Vec::new();
        for key in spec::reference() {
            keys.push(key.key.to_owned());
            keys.extend(key.key.split('.').map(str::to_owned));
            keys.extend(key.range.split([',', ' ', '`']).map(str::to_owned));
        }
        keys.extend(units.map(str::to_owned));
        keys.retain(|word| !word.is_empty() && word.is_ascii());
        keys.sort();
        keys.dedup();
        for target in ["drive", "set"] {
            fs::write(self.to.join(format!("{target}.dict")), dictionary(&keys))?;
        }
        let options = fio::known_options();
        let mut options: Vec<String> = options.iter().map(|known| known.name.to_owned()).collect();
        let values = [
            "randrw",
            "zipf:1.1",
            "zoned:50/5:30/15:20/80",
            "normal:30",
            "4k/50:8k/50",
            "stonewall",
            "include ",
            "${SIZE}",
            "[global]",
            "25%",
            "16k-64k",
            "1:2:3",
            "pareto:0.2",
            "poisson",
        ];
        options.extend(values.map(str::to_owned));
        fs::write(self.to.join("fio.dict"), dictionary(&options))
    }
}
